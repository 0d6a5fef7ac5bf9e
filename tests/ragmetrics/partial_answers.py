"""Questions in two parts of which an answer tells one and says that the other is missing.

Written before the rule that finds them; ``FULL`` are abstentions that tell something else first.
"""


def _pairs(text: str) -> list[tuple[str, str]]:
    """A question and its answer in turn, a line each."""
    lines = iter(text.strip().splitlines())
    return list(zip(lines, lines, strict=True))


PARTIAL = _pairs("""
How much is the basic tariff, and who is the contract partner?
The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month. The contract partner is not \
named in the document.
How long does the warranty last and who pays for the shipping?
The warranty lasts two years. I could not find who pays for the shipping.
When does the pool open? Is there a discount for students?
The pool opens on 1 May at 9 am. A discount for students is not mentioned.
What is the maximum file size and which formats are supported?
Files may be up to 25 MB in size. The notes do not say which formats are supported.
Who founded the museum and when was it renovated?
The museum was founded by Clara Weiss. When it was renovated is not stated.
Which port does the server listen on and how is TLS enabled?
The server listens on port 8443. There is no information on how to enable TLS.
What are the opening hours of the branch and does it have a ramp?
The branch is open from 9 to 18 on weekdays. Whether it has a ramp is not specified.
Does the plan include dental care and eye tests?
Yes, the plan includes dental care. Eye tests are not mentioned in the document.
How many vacation days do I get and can I carry them over?
You get 28 vacation days a year. The handbook does not mention carrying them over.
What does a parcel to Norway cost? And how long does it take?
A parcel to Norway costs 14.90 euros. However, the delivery time is not given.
Wie hoch ist die Gebühr und wann wird sie fällig?
Die Gebühr beträgt 35 Euro. Wann sie fällig wird, ist nicht angegeben.
Wie lange dauert die Prüfung und welche Hilfsmittel sind erlaubt?
Die Prüfung dauert 90 Minuten. Zu Hilfsmitteln enthalten die Unterlagen keine Angaben.
Combien coûte l'abonnement et comment peut-on le résilier ?
L'abonnement coûte 20 euros par mois. La résiliation n'est pas mentionnée dans les documents.
¿Cuánto cuesta la entrada y a qué hora cierra el museo?
La entrada cuesta 12 euros. El documento no menciona a qué hora cierra el museo.
""")

FULL = _pairs("""
営業時間は何時から何時までですか。
図書館は駅の近くにあります。営業時間は記載されていません。
Are dogs and cats allowed in the hostel?
The hostel has 40 beds. The notes do not mention pets.
Where are responses stored, and for how long?
Responses can be exported as CSV. Storage place and duration are not mentioned.
How much is the basic tariff?
The basic tariff is offered in the north only. Its price is not stated.
Which version of Slurm runs on the cluster?
Jobs go through Slurm on 210 nodes. The version is not named.
I have wide feet and a bad knee, would these shoes hurt me?
A bad knee is no fun. How wide the shoes are is not mentioned.
When does the pool open and what does it cost?
I am sorry that you had to wait so long. The notes name neither the hours nor the price.
When does the pool open and what does it cost?
The documents do not say when the pool opens. The price is not given either.
""")
