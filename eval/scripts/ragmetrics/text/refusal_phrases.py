# ruff: noqa: E501
"""How languages other than English decline to answer, or say that the sources lack the answer.

Each language has patterns of two kinds, as for English. *Refusal*: the speaker, in the first
person, cannot, may not or does not know, or excuses itself. *Lack*: the sources hold nothing about
it. They are written for folded text (lower case, ``ss`` for ``ß``); a blank stands for any white
space. All of them are built the same way: a subject (I, we, the documents), a negation and a verb
of telling or of finding, with a few words between. Each gap is bounded, so every pattern is linear.
"""

from __future__ import annotations

from typing import NamedTuple


class Phrases(NamedTuple):
    """Alternatives of one language; ``when`` opens a clause that only supposes."""

    refusal: tuple[str, ...]
    lack: tuple[str, ...]
    when: str


def _japanese(*patterns: str) -> tuple[str, ...]:
    """Patterns whose negatives end a clause of the speaker's own.

    A plain negative right before a noun describes that noun ("a fee that the contract does not
    mention"), and one before "to" with a verb of saying is what somebody else says.
    """
    reported = r"(?!と(?:いう|言[いうっわ]|答え|述べ|話[しす]|語[っりる]|表示|書[かい]|伝え|回答|返答|主張|発言|説明[しさ]|通知|報告))"
    return tuple(
        pattern.replace("ない", rf"ない(?![一-鿿ァ-ヶ]){reported}").replace(
            "ません", rf"ません{reported}"
        )
        for pattern in patterns
    )


def _gap(most: int) -> str:
    """Up to so many words of one clause, each with the blank after it."""
    return rf"(?:[^\s.!?;:]+ ){{0,{most}}}?"


_G3, _G5, _G8 = _gap(3), _gap(5), _gap(8)

_DE_SOURCE = (
    r"(?:dokument\w*|unterlagen?|quell(?:e|en|texte?n?)|text(?:e|en|es|s|stellen?)?|kontext\w*"
    r"|passagen?|abschnitte?n?|auszüge?n?|auszug|artikeln?|handbuch\w*|notizen|material(?:ien)?"
    r"|daten|informationen|seiten?|wissens(?:datenbank|basis)|datei(?:en)?|inhalte?n?|treffern?"
    r"|textstellen?|dokumentation|beschreibung|anleitung|bereitgestellte[nms]?|vorliegende[nms]?)"
)
_DE_NO = r"(?:nicht|nichts|kein(?:e|en|em|er|es|erlei)?|weder|niemals|nirgend\w*)"
_DE_FACT = (
    r"(?:information(?:en)?|angaben?|hinweise?|daten|antwort(?:en)?|aussagen?|auskunft|auskünfte"
    r"|erwähnung|details?|einzelheiten|anhaltspunkte?|belege?|kenntnisse?|ahnung|zugriff|zugang)"
)

_FR_SOURCE = (
    r"(?:documents?|documentation|sources?|textes?|contexte|passages?|extraits?|articles?|manuel"
    r"|notes|données|informations|pages?|base de connaissances|fichiers?|contenus?|éléments"
    r"|matériaux|guide|notice|résultats|sections?)"
)
_FR_NO = r"(?:pas|aucune?|rien|jamais|guère|point|nullement|ni)"
_FR_TELL = (
    r"(?:di(?:t|sent)|mentionn|précis|indiqu|contien|fourni|donn|abord|trait|parl|évoqu|permet"
    r"|répond|expliqu|détaill|couvr|spécifi|comport|inclu|renseign|figur|trouv|décri|signal|révèl"
    r"|suffi|cit|nomm|énonc|propos|offr|est |sont |a |ont |fait|font|aid|énumèr|list|apport)\w*"
)
_FR_FACT = (
    r"(?:informations?|renseignements?|mentions?|données?|réponses?|indications?|précisions?"
    r"|détails?|éléments?|traces?|idée|accès|connaissances?)"
)

_ES_SOURCE = (
    r"(?:documentos?|documentación|fuentes?|textos?|contextos?|pasajes?|fragmentos?|artículos?"
    r"|manual(?:es)?|notas|datos|información|páginas?|base de conocimientos?|archivos?|contenidos?"
    r"|material(?:es)?|guía|extractos?|resultados|secciones|sección)"
)
_ES_FACT = (
    r"(?:información|informaciones|datos?|menci(?:ón|ones)|respuestas?|indicaci(?:ón|ones)"
    r"|detalles?|referencias?|constancia|idea|acceso|conocimientos?|evidencias?)"
)

_IT_SOURCE = (
    r"(?:document[oi]|documentazione|font[ei]|test[oi]|contest[oi]|pass(?:aggi|i|o)|brani|brano"
    r"|articol[oi]|manual[ei]|note|dati|informazioni|pagin[ae]|base di conoscenza|file"
    r"|contenut[oi]|material[ei]|guida|estratt[oi]|risultati|sezion[ei])"
)
_IT_FACT = (
    r"(?:informazion[ei]|dat[oi]|menzion[ei]|rispost[ae]|indicazion[ei]|dettagli[o]?|riferiment[oi]"
    r"|notizi[ae]|idea|accesso|conoscenz[ae]|traccia|element[oi]|precisazion[ei])"
)

_PT_SOURCE = (
    r"(?:documentos?|documentação|fontes?|textos?|contextos?|passagens|passagem|trechos?|artigos?"
    r"|manual|manuais|notas|dados|informações|páginas?|base de conhecimento|arquivos?|ficheiros?"
    r"|conteúdos?|materia(?:l|is)|guia|excertos?|resultados|seç(?:ão|ões)|secç(?:ão|ões))"
)
_PT_FACT = (
    r"(?:informaç(?:ão|ões)|dados?|menç(?:ão|ões)|respostas?|indicaç(?:ão|ões)|detalhes?"
    r"|referências?|registros?|registos?|ideia|acesso|conhecimentos?|evidências?)"
)

_NL_SOURCE = (
    r"(?:document(?:en|atie)?|bron(?:nen)?|tekst(?:en)?|context|passages?|fragment(?:en)?"
    r"|artikel(?:en)?|handleiding(?:en)?|notities|gegevens|informatie|pagina(?:'s)?|kennisbank"
    r"|bestand(?:en)?|inhoud|materia(?:al|len)|gids|uittreksels?|resultaten|stukken|secties?)"
)
_NL_FACT = (
    r"(?:informatie|gegevens|vermelding(?:en)?|antwoord(?:en)?|aanwijzing(?:en)?|details?"
    r"|verwijzing(?:en)?|idee|toegang|kennis|uitleg|uitspraak|uitsluitsel)"
)

_RO_SOURCE = (
    r"(?:document\w*|surs\w*|text\w*|context\w*|pasaj\w*|fragment\w*|articol\w*|manual\w*|note\w*"
    r"|date\w*|informații\w*|pagin\w*|fișier\w*|conținut\w*|material\w*)"
)
_RO_FACT = r"(?:informați\w*|date|mențiun\w*|răspuns\w*|detali\w*|referir\w*|acces|idee)"

_RU_SOURCE = (
    r"(?:документ\w*|источник\w*|текст\w*|контекст\w*|отрывк\w*|фрагмент\w*|стать\w*|руководств\w*"
    r"|замет\w*|данны\w*|материал\w*|страниц\w*|файл\w*|баз\w* знаний|раздел\w*)"
)
_RU_FACT = r"(?:информаци\w*|сведени\w*|данны\w*|упоминани\w*|ответ\w*|указани\w*|подробност\w*)"

_EL_SOURCE = (
    r"(?:έγγραφ\w*|εγγράφ\w*|πηγ\w*|κείμεν\w*|κειμέν\w*|αποσπάσμα\w*|απόσπασμα|άρθρ\w*|εγχειρίδι\w*"
    r"|σημειώσ\w*|δεδομέν\w*|σελίδ\w*|περιεχόμεν\w*|αρχεί\w*|υλικ\w*)"
)
_EL_FACT = r"(?:πληροφορί\w*|στοιχεί\w*|αναφορ\w*|απάντηση|δεδομένα|λεπτομέρει\w*|ιδέα|πρόσβαση)"

_TR_SOURCE = (
    r"(?:belge\w*|kaynak\w*|kaynağ\w*|metin\w*|metn\w*|bağlam\w*|pasaj\w*|makale\w*|kılavuz\w*"
    r"|not(?:lar)\w*|veri\w*|sayfa\w*|dosya\w*|içerik\w*|içeriğ\w*|doküman\w*)"
)
_TR_FACT = r"(?:bilgi\w*|veri\w*|yanıt\w*|cevap\w*|ayrıntı\w*|ifade\w*|açıklama\w*|kayıt\w*)"

_VI_SOURCE = (
    r"(?:tài liệu|nguồn|văn bản|ngữ cảnh|đoạn (?:văn|trích)|bài viết|hướng dẫn|ghi chú|dữ liệu"
    r"|trang|nội dung|tệp|thông tin)"
)

_ZH_SOURCE = (
    r"(?:文档|文件|资料|资料库|来源|文本|上下文|段落|文章|手册|笔记|数据|页面|知识库|内容|材料|片段|信息|原文"
    r"|说明书|指南|记录|检索结果|文中|文獻|文献|檔案|資料|內容)"
)
_ZH_TELL = (
    r"(?:提及|提到|提供|包含|涉及|说明|指出|给出|找到|查到|记载|写明|列出|描述|注明|解释|回答|规定|涵盖|讨论"
    r"|记录|标明|显示|交代|披露|看到|发现|检索到|搜索到|介绍)"
)

_JA_SOURCE = (
    r"(?:文書|資料|ドキュメント|情報源|出典|テキスト|文脈|コンテキスト|文章|本文|記事|マニュアル|メモ|データ"
    r"|ページ|ナレッジベース|内容|ファイル|箇所|抜粋|説明書|ガイド|情報|手元|記録)"
)

_JA_HAS_NOT = r"(?<!ことは)(?<!では)(?<!必要)(?<!必要は)(?<!必要が)(?<!問題)(?<!問題は)(?<!関係)"
"""Before "there is none": what is no double negation, and not merely unnecessary or no matter."""

_HI_SOURCE = (
    r"(?:दस्तावेज़\S*|स्रोत\S*|पाठ\S*|संदर्भ\S*|सन्दर्भ\S*|अनुच्छेद\S*|अंश\S*|लेख\S*|पुस्तिका\S*|मैनुअल\S*|नोट\S*|डेटा"
    r"|पृष्ठ\S*|सामग्री|फ़ाइल\S*|जानकारी|पन्न\S*|विवरण|मार्गदर्शिका\S*|परिच्छेद\S*)"
)

PHRASES: dict[str, Phrases] = {
    "de": Phrases(
        refusal=(
            r"^\W*(?:\w+ )?(?:tut (?:es )?(?:mir|uns)|(?:das|es) tut (?:mir|uns)) (?:\w+ )?leid\b"
            r"(?!,? (?:das )?zu hören|,? dass (?:sie|du|ihr))",
            r"\bich (?:\w+ )?(?:bitte um (?:entschuldigung|verständnis|nachsicht)|bedau[er]+e)\b",
            r"^\W*(?:entschuldig\w*|verzeih\w*|pardon|sorry)\b(?! für)",
            rf"\bich (?:\w+ )?(?:kann|könnte|konnte|darf|möchte|werde|vermag|will) {_G8}{_DE_NO}\b",
            rf"\b(?:kann|könnte|konnte|darf|möchte|werde|vermag|will) ich {_G8}{_DE_NO}\b",
            rf"\bwir (?:können|dürfen|konnten|möchten|werden) {_G8}{_DE_NO} {_G5}(?:beantworten"
            r"|helfen|weiterhelfen|sagen|finden|mitteilen|geben|machen|herausgeben|nennen)\b",
            rf"\b(?:ich weiss|weiss ich|wissen wir|wir wissen) {_G3}(?:nicht|nichts)\b",
            rf"\b(?:ich habe|habe ich|wir haben|haben wir|mir liegen?|liegen? mir|uns liegen?"
            rf"|liegen? uns) {_G5}(?:kein\w*|nicht|nichts) (?:\w+ )?(?:\w+ )?(?:{_DE_FACT}"
            r"|gefunden|vor|entdeck\w*)\b",
            rf"\b(?:ich (?:finde|fand|sehe|kenne)|(?:finde|sehe|kenne) ich) {_G5}{_DE_NO}\b",
            r"\bmir (?:\w+ )?fehl(?:t|en)\b|\bfehl(?:t|en) mir\b|\bmir (?:ist|sind) (?:\w+ ){0,5}?"
            r"(?:nicht|nichts|kein\w*) (?:\w+ ){0,2}?(?:bekannt|möglich|erlaubt|gestattet)\b",
            r"\bich bin (?:\w+ ){0,3}?nicht (?:\w+ )?(?:in der lage|befugt|berechtigt|sicher"
            r"|imstande|autorisiert)\b|\bbin ich (?:\w+ ){0,2}?(?:überfragt|nicht (?:\w+ )?"
            r"(?:in der lage|befugt|berechtigt|sicher|imstande))\b",
            rf"\b(?:ich muss|muss ich) {_G5}(?:ablehnen|passen|verzichten|absehen)\b"
            r"|\b(?:ich lehne|lehne ich)\b",
            r"\b(?:ausserhalb|übersteigt) (?:\w+ ){0,2}?(?:mein\w*|unser\w*)\b",
        ),
        lack=(
            rf"\b{_DE_SOURCE} {_G5}(?:ent(?:hält|halten|hielt)|nenn(?:t|en)|erwähn(?:t|en)|geben"
            r"|gibt|sag(?:t|en)|mach(?:t|en)|liefer(?:t|n)|beschreib(?:t|en)|beantworte(?:t|n)"
            r"|äussern?|äussert|biete(?:t|n)|behandel(?:t|n)|führ(?:t|en)|geh(?:t|en)|reich(?:t|en)"
            rf"|schweig(?:t|en)|verr(?:ät|aten)|lassen|lässt|beinhalte(?:t|n)) {_G8}{_DE_NO}\b",
            rf"\b{_DE_SOURCE} schweig(?:t|en)\b",
            rf"\b{_DE_SOURCE} {_G5}(?:wird|werden|ist|sind|findet|finden|steht|stehen|gibt|geht"
            rf"|fehl(?:t|en)|taucht|kommt) {_G8}(?:{_DE_NO}|jede\w*)\b",
            rf"\b(?:wird|werden|ist|sind|findet|finden|steht|stehen|geht|taucht|kommt) {_G8}{_DE_NO}"
            rf" {_G5}{_DE_SOURCE}\b",
            rf"\b{_DE_NO} {_G3}{_DE_SOURCE} (?:\w+ ){{0,3}}?(?:erwähnt|angegeben|genannt|enthalten"
            r"|hervor|gefunden|beschrieben|aufgeführt|vorhanden|entnehmen|ersichtlich|behandelt"
            r"|vermerkt|dokumentiert|erläutert|erklärt)\b",
            rf"\b(?:dazu|hierzu|darüber|davon|hierüber) {_G5}{_DE_NO}\b",
            rf"\b(?:gibt es|es gibt|liegen|finden sich|es fehlen|es fehlt|findet sich) {_G5}"
            rf"(?:kein\w*|nicht genug|nicht genügend) (?:\w+ ){{0,3}}?{_DE_FACT}\b",
            rf"\bkein\w* (?:\w+ ){{0,3}}?{_DE_FACT} {_G8}(?:verfügbar|vorhanden|enthalten"
            r"|gefunden|vor|finden|entnehmen|hinterlegt|gemacht)\b",
            rf"\b(?:lässt|lassen) sich {_G8}{_DE_NO} {_G5}(?:beantworten|entnehmen|sagen|ermitteln"
            r"|feststellen|herauslesen|bestimmen|ableiten|finden|klären)\b",
            r"\bnicht (?:beantwortet werden|beantwortbar|zu beantworten|ermittelbar|bestimmbar)\b",
            r"^\W*leider\b.{0,200}\b(?:nicht|nichts|kein\w*|fehl(?:t|en))\b",
        ),
        when=r"(?:wenn|falls|sofern|sobald|sollte\w*|selbst wenn|immer wenn)\b",
    ),
    "fr": Phrases(
        refusal=(
            r"^\W*(?:(?:je suis|nous sommes) (?:\w+ )?)?(?:désolée?s?|navrée?s?)\b(?! d'apprendre"
            r"| d'entendre| pour)",
            r"\bje (?:vous |te )?(?:prie|demande) de (?:m'|nous )excuser\b|^\W*(?:veuillez (?:m'|nous )excuser|excusez-(?:moi|nous)|toutes mes excuses|pardon)\b",
            r"\bje regrette\b",
            rf"\b(?:je|nous) (?:ne |n')(?:\w+ )?(?:\w+')?(?:peux|puis|pouvons|sais|savons|suis|sommes"
            rf"|dispose|disposons|trouve|trouvons|connais|connaissons|souhaite|veux|vois|possède"
            rf"|parviens|peut|saurais|pourrai|pourrais|arrive|suis)(?: (?:\w+ ){{0,3}}?{_FR_NO}\b"
            r"|\b)",
            rf"\b(?:je|nous) n'(?:ai|avons|y) {_G5}{_FR_NO}\b|\b(?:j'|je l')ignore\b|\bnous ignorons\b",
            rf"\bil (?:m'est|nous est|ne m'est|ne nous est|m'est malheureusement) {_G3}"
            r"(?:impossible|pas possible|interdit|pas permis|difficile)\b",
            r"\bje (?:suis|me vois|reste) (?:\w+ ){0,3}?(?:incapable|dans l'impossibilité"
            r"|contrainte?|obligée?|forcée?)\b|\bje dois (?:\w+ )?(?:décliner|refuser|m'abstenir)\b"
            r"|\bje (?:refuse|décline|préfère ne)\b",
            r"\b(?:dépasse|hors de|au-delà de|sort d[eu]|en dehors d[eu]) (?:\w+ )?(?:mes|mon|ma|notre"
            r"|nos)\b|\bje manque (?:de|d')",
        ),
        lack=(
            rf"\b{_FR_SOURCE} {_G8}(?:ne |n')(?:(?:y|en|le|la|les|me|nous|vous) )?{_FR_TELL} ?(?:\w+ ){{0,2}}?{_FR_NO}\b",
            rf"\b{_FR_SOURCE} {_G3}(?:sont|est|rest\w+) (?:\w+ )?(?:muet\w*|silencieu\w+)",
            rf"\bil n'y a {_G3}(?:pas|aucune?|rien|guère)(?: (?:assez|suffisamment|de|d'))?"
            rf"[^.!?;:]{{0,60}}(?:{_FR_FACT}|{_FR_SOURCE})\b",
            rf"\baucune? (?:\w+ ){{0,2}}?(?:{_FR_FACT}|{_FR_SOURCE}) {_G8}(?:n'|ne )\w+",
            rf"\b(?:n'est|n'a|ne sont|n'ont|ne figure(?:nt)?|n'apparaît|n'apparaissent|n'était"
            rf"|ne se trouve(?:nt)?) {_G5}(?:pas|aucune?|nulle part|jamais) {_G8}{_FR_SOURCE}\b",
            r"\b(?:n'est|ne sont|n'a) (?:\w+ )?(?:pas|nulle part|jamais)(?: \w+)? (?:mentionnée?s?"
            r"|précisée?s?|indiquée?s?|spécifiée?s?|abordée?s?|traitée?s?|évoquée?s?|décrite?s?"
            r"|fournie?s?|disponibles?|renseignée?s?|documentée?s?|donnée?s?)\b",
            r"\b(?:ne (?:peut|peuvent|permet|permettent)|impossible de|pas possible de)"
            r"[^.!?;:]{0,60}\b(?:répondre|déterminer|savoir|trouver|conclure|dire|établir|préciser"
            r"|répondue?|déterminée?)\b",
            rf"\b(?:rien|aucune? \w+) (?:n'est|ne) {_G8}{_FR_SOURCE}\b|\brien (?:\w+ ){{0,2}}?"
            rf"(?:dans|n'indique|ne (?:précise|permet))\b|\bn'y (?:figure|apparaît|est) {_G3}pas\b",
            rf"\b(?:réponse|information|renseignement|détail)s? {_G8}(?:absente?s?|introuvables?"
            rf"|indisponibles?|manquante?s?|manquent?|fait défaut|font défaut)\b|\bfaute d'|\bsans (?:plus|davantage) d'informations?\b",
            r"^\W*malheureusement\b.{0,200}\b(?:pas|aucune?|rien|impossible)\b",
        ),
        when=r"(?:si|s'il|s'ils|lorsqu\w*|quand|en cas|dès|au cas|chaque fois|tant qu\w*)\b",
    ),
    "es": Phrases(
        refusal=(
            r"^\W*(?:lo siento|lo sentimos|lo lamento|lamento|lamentamos|perdón|perdona|perdone"
            r"|disculpa|disculpe|disculpas|mis disculpas)\b(?! (?:que|oír|saber|por))",
            r"\b(?:lamento|siento|lamentamos|sentimos)\b.{0,60}\bno\b|\b(?:pido|pedimos) disculpas?\b"
            r"|\ble ruego que me disculpe\b",
            r"(?<!\bque\s)\bno (?:\w+ )?(?:puedo|podría|podré|sé|conozco|tengo|dispongo|encuentro|encontré"
            r"|cuento|veo|logro|logré|consigo|quiero|poseo|sabría|debo|estoy|soy|he)\b(?! (?:duda"
            r"|claro que|de acuerdo))",
            r"\bno (?:\w+ )?(?:podemos|sabemos|disponemos|encontramos|tenemos|hemos|contamos)"
            r"[^.!?;:]{0,50}\b(?:responder|información|contestar|ayudar\w*|datos|respuesta"
            r"|encontrad[oa]|facilitar\w*|constancia|decir\w*|ofrecer\w*)\b",
            r"\b(?:desconozco|ignoro|carezco|me niego|rechazo|prefiero no|debo (?:rechazar|declinar"
            r"|negarme|abstenerme)|soy incapaz|me temo que)\b|\b(?:me|nos) (?:es|resulta) "
            r"(?:\w+ )?imposible\b|\bno me (?:es|resulta|está|consta|corresponde)\b",
            r"\b(?:fuera de|excede|supera|escapa a) (?:\w+ )?(?:mis?|nuestr[oa]s?)\b|\bme falta\b"
            r"|\bme faltan\b|\btengo que (?:declinar|rechazar|negarme)\b",
        ),
        lack=(
            rf"\b{_ES_SOURCE} {_G8}(?:no|tampoco|nunca|nada) (?:\w+ )?(?:\w+)",
            rf"\bno (?:hay|existen?|consta|constan|figuran?|aparecen?|se|está|están|viene|ha|fue"
            rf"|he|quedan?) [^.!?;:]{{0,90}}\b(?:{_ES_SOURCE}|{_ES_FACT})\b",
            r"\bno (?:se|está|están|viene|vienen|fue|fueron|queda|aparece|figura)(?: \w+){0,2} "
            r"(?:menciona\w*|especifica\w*|indica\w*|detalla\w*|precisa\w*|aborda\w*|describ\w*"
            r"|proporciona\w*|disponibles?|recog\w*|trata\w*|encuentra\w*|explica\w*|dice)\b",
            r"\bno (?:se puede|es posible|puede|se podría|permiten?|basta\w*)[^.!?;:]{0,60}\b"
            r"(?:responder\w*|determinar\w*|saber\w*|contestar\w*|concluir|decir\w*|establecer\w*"
            r"|precisar|averiguar\w*|deducir\w*)\b",
            rf"\b(?:ningun[oa]|ningún|nada) {_G5}(?:{_ES_SOURCE}|{_ES_FACT})\b|\bnada (?:sobre|de"
            r"|acerca)\b|\bfaltan? (?:\w+ )?(?:información|datos)\b|\bsin (?:más )?información\b",
            r"^\W*(?:lamentablemente|desafortunadamente|por desgracia|desgraciadamente)\b.{0,200}"
            r"\b(?:no|ningun[oa]|ningún|nada|imposible)\b",
        ),
        when=r"(?:si|cuando|en caso|siempre que|cada vez)\b",
    ),
    "it": Phrases(
        refusal=(
            r"^\W*(?:mi (?:dispiace|spiace|scuso)|ci (?:dispiace|scusiamo)|spiacente|scusa|scusi"
            r"|scusami|purtroppo (?:non|mi)|sono (?:\w+ )?(?:spiacente|desolat[oa])|chiedo scusa)\b"
            r"(?! (?:di sapere|sapere|sentire|per))",
            r"(?<!\bche\s)\bnon (?:\w+ )?(?:posso|so|ho|conosco|dispongo|trovo|riesco|sono (?:\w+ )?(?:in grado"
            r"|autorizzat[oa]|sicur[oa]|a conoscenza|riuscit[oa])|potrei|saprei|intendo|voglio|vedo"
            r"|possiedo|potrò|mi (?:è|risulta|consta))\b(?! (?:dubbi|problemi))",
            r"\bnon (?:\w+ )?(?:possiamo|sappiamo|disponiamo|abbiamo|troviamo|siamo in grado)"
            r"[^.!?;:]{0,50}\b(?:risponder\w*|informazion\w*|aiutar\w*|dati|risposta|trovat[oaie]"
            r"|fornir\w*|dir\w*)\b",
            r"\b(?:ignoro|mi rifiuto|rifiuto|devo (?:rifiutare|declinare|astenermi)|preferisco non"
            r"|sono costrett[oa]|mi è impossibile|mi manca(?:no)?|temo di non)\b",
            r"\b(?:fuori dal(?:le|la)?|al di fuori del(?:le|la)?|esula dal(?:le|la)?|oltre le) "
            r"(?:mi[eoa]|nostr[eoa])\b",
        ),
        lack=(
            rf"\b{_IT_SOURCE} {_G8}(?:non|né|nulla|niente) (?:\w+)",
            rf"\bnon (?:c'è|ci sono|vi è|vi sono|esiste|esistono|risulta|risultano|compare"
            rf"|compaiono|figura|figurano|si|è|sono|viene|vengono|emerge) ?[^.!?;:]{{0,90}}\b"
            rf"(?:{_IT_SOURCE}|{_IT_FACT})\b",
            r"\bnon (?:è|sono|viene|vengono|si)(?: \w+){0,2} (?:menzionat\w*|specificat\w*"
            r"|indicat\w*|precisat\w*|riportat\w*|trattat\w*|descritt\w*|fornit\w*|disponibil\w*"
            r"|parla|dice|trova\w*|presente|presenti|citat\w*)\b",
            r"\b(?:non (?:è possibile|si può|può|possono|permett\w+|consent\w+|bast\w+)"
            r"|impossibile)[^.!?;:]{0,60}\b(?:risponder\w*|determinar\w*|saper\w*|stabilir\w*"
            r"|dire|dirlo|conclud\w*|ricavar\w*|risposta)\b",
            rf"\bnessun[oa]?'?(?:\w+)? {_G5}(?:{_IT_SOURCE}|{_IT_FACT})\b|\b(?:nulla|niente) (?:nei"
            rf"|nel|nella|su|sul|al)\b|\bmancano? (?:\w+ )?{_IT_FACT}\b|\bsenza (?:ulteriori )"
            r"?informazioni\b",
            r"^\W*(?:purtroppo|sfortunatamente)\b.{0,200}\b(?:non|nessun\w*|nulla|impossibile)\b",
        ),
        when=r"(?:se|quando|qualora|nel caso|ogni volta|nel momento)\b",
    ),
    "pt": Phrases(
        refusal=(
            r"^\W*(?:(?:eu )?(?:sinto|lamento|lamentamos|peço|pedimos)|desculpe|desculpa|desculpas"
            r"|perdão|perdoe|infelizmente,? (?:eu )?não)\b(?! (?:saber|ouvir|por|pel[oa]))",
            r"(?<!\bque\s)\b(?:eu )?não (?:\w+ )?(?:posso|sei|tenho|conheço|disponho|encontro|encontrei|consigo"
            r"|consegui|estou|sou|poderia|poderei|vejo|possuo|quero|vou|saberia|devo|localizei|me é"
            r"|me cabe)\b(?! (?:dúvidas?|certeza de que))",
            r"\bnão (?:\w+ )?(?:podemos|sabemos|dispomos|temos|encontramos|conseguimos)"
            r"[^.!?;:]{0,50}\b(?:responder|informaç\w+|ajud\w+|dados|resposta|fornecer|dizer)\b",
            r"\b(?:desconheço|ignoro|recuso|recuso-me|me recuso|devo (?:recusar|declinar)|prefiro "
            r"não|tenho (?:de|que) (?:recusar|declinar)|sou incapaz|receio (?:que )?não)\b"
            r"|\b(?:é-me|me é) impossível\b|\bfaltam?-me\b|\bme faltam?\b",
            r"\b(?:fora d[oae]s?|além d[oae]s?|ultrapassa|foge a?o?s?) (?:\w+ )?(?:minhas?|meus?"
            r"|noss[oa]s?)\b",
        ),
        lack=(
            rf"\b{_PT_SOURCE} {_G8}(?:não|nem|nada|tampouco) (?:\w+)",
            rf"\bnão (?:há|existem?|constam?|figuram?|aparecem?|se|está|estão|é|são|foi|foram|vem"
            rf"|houve) [^.!?;:]{{0,90}}\b(?:{_PT_SOURCE}|{_PT_FACT})\b",
            r"\bnão (?:é|são|está|estão|foi|foram|se|vem|consta)(?: \w+){0,2} (?:menciona\w*"
            r"|especifica\w*|indica\w*|detalha\w*|aborda\w*|descri\w*|forneci\w*|disponíve\w*"
            r"|trata\w*|encontra\w*|explica\w*|informa\w*|referi\w*)\b",
            r"\b(?:não (?:é possível|se pode|pode|permit\w+|dá para|bast\w+)|impossível)"
            r"[^.!?;:]{0,60}\b(?:responder\w*|determinar\w*|saber|concluir|dizer|estabelecer"
            r"|respondid\w*|deduzir)\b",
            rf"\bnenhum[a]? {_G5}(?:{_PT_SOURCE}|{_PT_FACT})\b|\bnada (?:sobre|a respeito|n[oa]s?)\b"
            rf"|\bfaltam? (?:\w+ )?{_PT_FACT}\b|\bsem (?:mais )?informações\b",
            r"^\W*(?:infelizmente|lamentavelmente)\b.{0,200}\b(?:não|nenhum\w*|nada|impossível)\b",
        ),
        when=r"(?:se|quando|caso|sempre que|cada vez|no caso)\b",
    ),
    "nl": Phrases(
        refusal=(
            r"^\W*(?:het spijt (?:me|mij|ons)|(?:me|mij) spijt|sorry|excuses|excuseer|helaas"
            r" (?:kan|weet|heb|mag|ben) ik|mijn excuses|neem me niet kwalijk)\b(?! (?:te horen"
            r"|voor het|voor de|dat (?:je|u)))",
            rf"\bik (?:\w+ )?(?:kan|kon|mag|wil|zal|zou|durf) {_G8}(?:niet|niets|geen|nooit)\b",
            rf"\b(?:kan|kon|mag|wil|zal|zou|durf) ik {_G8}(?:niet|niets|geen|nooit)\b",
            rf"\b(?:we|wij) (?:kunnen|mogen|konden) {_G8}(?:niet|niets|geen) {_G3}(?:beantwoorden|helpen"
            r"|zeggen|vinden|geven|delen)\b",
            rf"\b(?:ik (?:weet|ken|vind|vond|zie)|(?:weet|ken|vind|vond|zie) ik) {_G5}(?:niet"
            r"|niets|geen)\b",
            rf"\b(?:ik heb|heb ik|ik beschik|beschik ik|(?:we|wij) hebben|hebben (?:we|wij)) {_G5}(?:geen|niet"
            rf"|niets|onvoldoende) {_G3}(?:{_NL_FACT}|gevonden|kunnen)\b",
            r"\b(?:ik ben|ben ik) (?:\w+ ){0,2}?niet (?:\w+ )?(?:in staat|bevoegd|zeker|gemachtigd"
            r"|bekend)\b|\bik moet (?:\w+ ){0,4}?(?:weigeren|passen|afwijzen)\b|\bik weiger\b|^\W*(?:daar|hier)\w* (?:\w+ ){0,3}?ik (?:\w+ ){0,4}?(?:niet|niets|geen)\b"
            r"|\b(?:mij|me) (?:\w+ )?(?:niet bekend|onbekend)\b|\b(?:is|zijn) (?:mij|me) "
            r"(?:\w+ )?(?:niet|onbekend)\b|\bontbreekt (?:het )?(?:mij|me)\b|\bik mis\b",
            r"\bbuiten (?:mijn|ons|onze|wat ik)\b|\blukt (?:het )?(?:me|mij) niet\b",
            rf"\b(?:dat|of|zodat|omdat|want) ik {_G5}(?:niet|niets|geen) {_G3}(?:weet|kan|mag|ken|vind|zie|heb)\b",
            r"^\W*(?:nee,? )?(?:dat|dit|zoiets|zulke|daar\w*|hier\w*) (?:\w+ ){0,2}?(?:doe|ga|werk|geef|vertel"
            r"|help|schrijf|zeg|deel|maak) (?:ik|wij|we) (?:\w+ ){0,3}?(?:niet|niets|geen)\b",
            r"^\W*(?:\w+,? )?geen (?:flauw )?idee\b|\b(?:ik|wij|we) (?:\w+ ){0,3}?in het duister\b"
            r"|\bantwoord (?:\w+ )?schuldig\b|\b(?:dat|dit) is (?:\w+ )?(?:onbekend|niet bekend)\b",
        ),
        lack=(
            rf"\b{_NL_SOURCE} {_G5}(?:bevat\w*|noem\w*|vermeld\w*|ge(?:ven|eft)|zeg\w*|biedt"
            r"|bieden|beschrijv\w*|beantwoord\w*|behandel\w*|gaa\w*|maa?k\w*|verstrek\w*|lever\w*"
            rf"|zwijg\w*|spre\w+|hebben|heeft|laten|laat|melden|meldt) {_G8}(?:niet|niets|geen|nergens)\b",
            rf"\b{_NL_SOURCE} zwijg\w*\b|\b(?:ontbreekt|ontbreken) {_G5}(?:{_NL_FACT}|{_NL_SOURCE})\b|\b{_NL_FACT} {_G5}ontbre(?:ekt|ken)\b",
            rf"\bover {_G8}(?:wordt|worden|staat|staan|is|zijn|vind\w*|bevat\w*|zeg\w*) {_G5}(?:niets|niet|geen|nergens)\b",
            rf"\b{_NL_SOURCE} {_G5}(?:wordt|worden|is|zijn|staat|staan|vind\w*|ontbreek\w*|komt"
            rf"|valt) {_G8}(?:niet|niets|geen|nergens)\b",
            rf"\b(?:wordt|worden|is|zijn|staat|staan|komt|valt) {_G8}(?:niet|niets|geen|nergens)"
            rf" {_G5}{_NL_SOURCE}\b",
            rf"\b(?:er (?:is|zijn|staat|staan|wordt|ontbreekt)|(?:is|zijn|staat) er) {_G5}(?:geen"
            rf"|niet genoeg|onvoldoende|niets|niet) {_G3}(?:{_NL_FACT}|over|in|te vinden)\b",
            rf"\bgeen (?:\w+ ){{0,3}}?{_NL_FACT} {_G8}(?:beschikbaar|gevonden|aanwezig|te vinden"
            rf"|opgenomen|bekend|over|in)\b|\b(?:hierover|daarover) {_G5}(?:niets|geen|niet)\b",
            r"\b(?:niet|geen) (?:\w+ ){0,3}?(?:te beantwoorden|beantwoord(?: worden)?|op te maken"
            r"|af te leiden|vast te stellen|te bepalen|te zeggen|vermeld|genoemd|beschreven"
            r"|gespecificeerd)\b",
            r"^\W*helaas\b.{0,200}\b(?:niet|niets|geen|ontbreekt|onbekend)\b",
            rf"\b{_NL_SOURCE} {_G5}(?:met geen woord|in het midden|onvermeld|open|onduidelijk)\b",
            rf"\b(?:uit|in|op basis van|volgens) {_G3}{_NL_SOURCE} {_G3}(?:blijk\w*|volgt|kan|kunnen|valt|vallen) {_G5}(?:niet|niets|geen)\b",
            r"\b(?:niet|niets) (?:te|worden|wordt) (?:opgemaakt|afgeleid|bepaald|vastgesteld|beantwoord|achterhaald|teruggevonden)\b",
            rf"\b(?:niets|nergens) {_G3}{_NL_SOURCE} (?:\w+ )?(?:wijst|zegt|gaat|verwijst|duidt|staat|noemt)\b",
            r"\bsta(?:at|an) er (?:\w+ )?(?:niet|nergens|niets) (?:in|bij|vermeld|over)\b",
        ),
        when=r"(?:als (?!\w*(?:taalmodel|ai|assistent|chatbot|model)\b)|(?:wanneer|indien|zodra|mocht\w*|telkens)\b)",
    ),
    "ro": Phrases(
        refusal=(
            r"^\W*(?:îmi pare rău|ne pare rău|regret|scuze|îmi cer scuze|mă tem că)\b",
            r"\bnu (?:\w+ )?(?:pot|știu|am|dispun|găsesc|cunosc|sunt|reușesc|vreau|îmi)\b",
            r"\bnu (?:putem|știm|avem|dispunem)[^.!?;:]{0,50}\b(?:răspun\w*|informații|ajut\w*)\b",
            r"\b(?:refuz|trebuie să refuz|mi-e imposibil|îmi este imposibil|depășește)\b",
        ),
        lack=(
            rf"\b{_RO_SOURCE} {_G8}nu \w+",
            rf"\bnu (?:există|apar\w*|se|este|sunt|figurează|s-au?|a fost) [^.!?;:]{{0,90}}\b"
            rf"(?:{_RO_SOURCE}|{_RO_FACT})\b",
            rf"\b(?:nicio|niciun|nimic) {_G5}(?:{_RO_SOURCE}|{_RO_FACT})\b",
            r"^\W*din păcate\b.{0,200}\b(?:nu|nicio|niciun|imposibil)\b",
        ),
        when=r"(?:dacă|când|atunci când|în cazul)\b",
    ),
    "tr": Phrases(
        refusal=(
            r"^\W*(?:üzgünüm|maalesef|özür dilerim|kusura bakmayın|ne yazık ki|affedersiniz)\b",
            r"\b\w*(?:amıyorum|emiyorum|amam|emem|mıyorum|miyorum|muyorum|müyorum|amayacağım"
            r"|emeyeceğim|amadım|emedim)\b",
            r"\b(?:bilgim|fikrim|yetkim|erişimim) (?:\w+ )?(?:yok|değil|bulunmuyor)\b",
        ),
        lack=(
            rf"\b(?:{_TR_SOURCE}|{_TR_FACT}) [^.!?;:]{{0,100}}(?:\byok\b|\byoktur\b|\w*(?:mıyor"
            r"|miyor|muyor|müyor|memiş|mamış|memektedir|mamaktadır|medi|madı)(?:lar)?\b)",
        ),
        when=r"(?:eğer|şayet)\b",
    ),
    "vi": Phrases(
        refusal=(
            r"^\W*(?:rất tiếc|xin lỗi|tôi (?:rất )?(?:xin lỗi|tiếc|lấy làm tiếc)|thành thật xin lỗi)",
            r"\b(?:tôi|chúng tôi|mình) (?:\w+ )?(?:không|chưa|chẳng) (?:thể|biết|có|tìm|được|rõ|chắc"
            r"|đủ|thấy)\b|\btôi (?:phải )?từ chối\b",
        ),
        lack=(
            rf"\b{_VI_SOURCE} {_G8}(?:không|chưa|chẳng) (?:\w+ )?(?:đề cập|nêu|có|nói|cung cấp|chứa"
            r"|ghi|nhắc|cho biết|đưa|đủ|mô tả|trả lời|bao gồm|giải thích)\b",
            rf"\bkhông (?:có|tìm thấy|thấy) (?:\w+ ){{0,4}}?(?:thông tin|dữ liệu|câu trả lời|{_VI_SOURCE})",
            r"\bkhông (?:thể|đủ) (?:\w+ ){0,4}?(?:trả lời|xác định|kết luận)\b",
        ),
        when=r"(?:nếu|khi|trong trường hợp)\b",
    ),
    "ru": Phrases(
        refusal=(
            r"^\W*(?:извините|простите|прошу прощения|мне (?:очень )?жаль|приношу (?:свои )?извинения"
            r"|сожалею|к сожалению,? я)\b(?!,? что (?:вы|вас))",
            rf"\bя {_G3}не (?:\w+ )?(?:могу|знаю|имею|нашёл|нашел|нашла|обладаю|располагаю|вижу|смогу"
            r"|буду|уверен\w*|вправе|смог\w*|в состоянии)\b|\bне (?:могу|знаю|располагаю|нашёл|нашел"
            r"|вправе|смогу|имею)\b(?! не)",
            r"\bмы не (?:можем|знаем|располагаем|нашли|имеем)\b|\bу меня нет\b|\bмне (?:\w+ )?(?:не"
            r" ?известно|неизвестн\w*|запрещено|не хватает)\b|\b(?:вынужден\w* отказать\w*"
            r"|отказываюсь)\b|\bвыходит за рамки\b",
        ),
        lack=(
            rf"\b{_RU_SOURCE} {_G8}(?:не (?:\w+ )?\w+|нет|ничего|отсутству\w+)",
            rf"\b(?:нет|отсутству\w+|не \w+|никак\w+) {_G5}(?:{_RU_FACT}|{_RU_SOURCE})\b",
            r"\b(?:невозможно|нельзя) (?:\w+ ){0,4}?(?:ответить|определить|установить|сказать)\b",
            r"^\W*к сожалению\b.{0,200}\b(?:не|нет|невозможно|отсутству\w+)\b",
        ),
        when=r"(?:если|когда|в случае|в тех случаях)\b",
    ),
    "el": Phrases(
        refusal=(
            r"^\W*(?:λυπάμαι|λυπούμαστε|συγγνώμη|ζητώ συγγνώμη|με συγχωρείτε|δυστυχώς)\b",
            r"\bδεν (?:\w+ )?(?:μπορώ|γνωρίζω|ξέρω|έχω|διαθέτω|βρίσκω|βρήκα|είμαι|κατάφερα)\b"
            r"|\b(?:αδυνατώ|αρνούμαι|αγνοώ)\b|\bδεν (?:μπορούμε|γνωρίζουμε|διαθέτουμε|βρήκαμε)\b",
        ),
        lack=(
            rf"\b{_EL_SOURCE} {_G8}δεν \w+",
            rf"\bδεν (?:υπάρχ\w+|αναφέρ\w+|βρέθηκ\w+|περιλαμβάν\w+|παρέχ\w+|περιέχ\w+|προκύπτ\w+)"
            rf" [^.!?;:]{{0,90}}\b(?:{_EL_SOURCE}|{_EL_FACT})\b",
            r"\bδεν (?:μπορεί|είναι δυνατόν|είναι δυνατό) [^.!?;:]{0,60}(?:απαντηθ\w+|προσδιορ\w+"
            r"|απαντήσ\w+)",
        ),
        when=r"(?:αν|εάν|όταν|σε περίπτωση)\b",
    ),
    "ar": Phrases(
        refusal=(
            r"^\W*(?:عذرا|عذرًا|آسف|أعتذر|معذرة|يؤسفني|للأسف|نعتذر|أنا آسف)",
            r"(?:لا أستطيع|لا يمكنني|لا أعرف|لا أعلم|لا أملك|ليس لدي|لست متأكد|لم أجد|لم أعثر"
            r"|لا أدري|لا تتوفر لدي|ليست لدي|أرفض|لن أتمكن|لا يسعني|لا نستطيع|لا يمكننا|ليس لدينا)",
        ),
        lack=(
            r"(?:الوثائق|الوثيقة|المستندات|المستند|المصادر|المصدر|النص|النصوص|السياق|المقاطع|المقال"
            r"|الدليل|الملاحظات|البيانات|المعلومات|الصفحات|الصفحة|المحتوى|الملفات)[^.!?؟;:]{0,60}"
            r"(?:لا |لم |ليس|ليست)",
            r"(?:لا|لم|ليس|ليست) [^.!?؟;:]{0,60}(?:معلومات|إجابة|الوثائق|المستندات|المصادر|النص"
            r"|السياق|ذكر)",
            r"لا يمكن [^.!?؟;:]{0,40}(?:الإجابة|تحديد|معرفة)",
        ),
        when=r"(?:إذا|عندما|في حال|لو)",
    ),
    "hi": Phrases(
        refusal=(
            r"^\W*(?:मुझे |हमें )?(?:क्षमा|माफ़|माफ|खेद|अफ़सोस|अफसोस|माफ़ी|माफी|सॉरी|दुख)(?! .{0,20}सुनकर)",
            r"(?:मैं|हम)\s[^।!?]{0,100}?(?:नहीं|असमर्थ|अक्षम|न )\s?[^।!?]{0,20}(?:सकता|सकती|सकते|पाया|पाई|पाऊँगा"
            r"|पाऊंगा|पाऊँगी|पा रहा|पा रही|जानता|जानती|जानते|हूँ|हूं|हैं|चाहता|चाहूँगा|चाहूंगा|बता|दे|कर|रखता|मिला|मिली)",
            r"(?:मुझे|मुझको|हमें)\s[^।!?]{0,100}?(?:नहीं|न )\s?(?:पता|मालूम|मिल\S*|ज्ञात|है|दिख\S*|आता|आती|बता\S*|दी)",
            r"(?:मेरे|हमारे) पास\s[^।!?]{0,100}?(?:नहीं|कोई\s[^।!?]{0,40}नहीं)|(?:मैं|हम) [^।!?]{0,60}(?:इनकार|इंकार|मना) कर"
            r"|(?:मेरे लिए|मेरी|मेरे)\s[^।!?]{0,80}?(?:संभव नहीं|सम्भव नहीं|असंभव|बाहर|नहीं|अनुमति नहीं)|मुझसे [^।!?]{0,40}नहीं",
        ),
        lack=(
            rf"{_HI_SOURCE}\s[^।!?]{{0,140}}?(?:नहीं|कोई\s[^।!?]{{0,40}}नहीं|अनुपलब्ध|मौन|अभाव)",
            r"(?:जानकारी|उत्तर|जवाब|उल्लेख|सूचना|विवरण|संकेत|ज़िक्र|जिक्र|आँकड़ा|आंकड़ा)\s[^।!?]{0,80}?(?:नहीं|अनुपलब्ध)",
            r"(?:कहीं|कुछ) (?:भी )?(?:\S+ ){0,4}नहीं|(?:बताना|कहना|देना) [^।!?]{0,20}(?:संभव|सम्भव) नहीं|उत्तर नहीं",
            r"^\W*(?:दुर्भाग्य|अफ़सोस|खेद)\S*[^।]{0,200}(?:नहीं|असमर्थ)",
        ),
        when=r"(?:यदि|अगर|जब|जहाँ|जहां)\s",
    ),
    "zh": Phrases(
        refusal=(
            r"^\W*(?:(?:非常|很|十分|实在|真的|真)?(?:抱歉|对不起|遗憾|不好意思|對不起|抱歉)|请(?:您)?(?:原谅|见谅|谅解)|恕)"
            r"(?!.{0,6}(?:听到|得知|给您带来|让您))",
            r"(?:我|我们|本助手|本人|在下|笔者)[^。！？!?；]{0,20}?(?:无法|不能|没有办法|没办法|不便|不可以|不知道|不清楚|不了解|不确定"
            r"|没有(?:找到|查到|足够|相关|任何|权限|关于|看到|这方面|发现|能)|没(?:找到|查到)|未能|未找到|未查到|无权|不方便|拒绝|无从|并不知"
            r"|不掌握|不会(?:提供|回答|帮)|答不上|找不到|查不到|帮不|回答不了|难以|无能为力|不得不)",
            r"(?:无法|不能|未能|难以|没法|不便|无从|不可)(?:就此|对此|为您|向您|给您|直接|据此|准确|从中|在此|确切|明确|替您|给出|向你|为你)?"
            r"(?:回答|提供|协助|帮助|给出|告知|透露|满足|答复|作答|回复|处理|确定|判断|得知|确认|说明|解答|得出|奉告)",
            r"(?:超出|超过)(?:了)?[^。！？]{0,8}(?:范围|能力|权限)",
        ),
        lack=(
            rf"{_ZH_SOURCE}[^。！？!?；]{{0,25}}?(?:没有|并没有|没|未|并未|均未|都未|不|无|不曾|从未|尚未|缺乏|缺少){_ZH_TELL}",
            rf"{_ZH_SOURCE}[^。！？!?；]{{0,12}}?(?:没有|并没有|并无|无|缺乏|缺少|不足以|不包括|不含|不足)",
            r"(?:没有|并无|未|无|缺乏|缺少|找不到|查不到|并未|没能|未能)[^。！？!?；]{0,20}?(?:相关|有关|足够|任何|具体|明确)?"
            r"[^。！？!?；]{0,8}?(?:信息|资料|内容|说明|记载|答案|数据|依据|线索|描述|記載|資訊)",
            rf"(?:没有|未|并未|没|不曾|未曾|并没有)(?:明确|具体|直接)?{_ZH_TELL}",
            r"(?:无从|无法|不能)(?:得知|确定|判断|回答|知晓|推断|查证|确认)",
        ),
        when=r"(?:如果|若|假如|倘若|一旦|要是|当(?!該)|每当|即使)",
    ),
    "ja": Phrases(
        refusal=_japanese(
            r"^\W*(?:誠に|大変|まことに)?(?:申し訳|申しわけ|すみません|ごめんなさい|恐れ入りますが|恐縮ですが|残念ながら|あいにく|失礼ながら)"
            r"(?!.{0,6}(?:お待たせ))",
            r"(?:お?答え|回答|お示し|提示|発見|検出|把握|突き止め|突きとめ|見いだ|見出|お手伝い|お力|ご案内|提供|ご提供|お伝え|対応|お教え|判断|お応え|応じ|特定|確認|お見せ|開示|申し上げ|ご紹介"
            r"|教え|お助け|断定|説明|ご説明|お話し|協力|共有|支援)(?:すること|する|いたし|になること|ること|すこと|する事)?(?:が|は|を|も|に)?"
            r"(?:することが|することは)?(?:[ぁ-んァ-ン]{0,4})?(?:でき(?:ません|ない|かねます|ず|そうに(?:ない|ありません|ございません))|(?:叶|適|かな)(?:い|え)?(?:ません|わない|わず)|致しかね|いたしかね|できかね|しかね|かねます|なれません"
            r"|られません|差し控え|出来(?:ません|ない)|控え|いたしません|不可能|難しい)",
            r"(?:知識|権限|根拠|手がかり|情報|データ|許可|アクセス権)(?:が|は|も|を)[^。]{0,12}?(?:ありません|ございません|ない(?:ため|ので|です)|おりません|いません|得られません)"
            r"|(?:言え|申せ|話せ|教えられ|手伝え|答えられ|応じられ|お出しでき|扱え|見つけられ|見つかり|見当たり|決められ|断言でき|読み取れ)(?:ません|ない(?:ため|です|ので))|不明です|(?:対応|サポート)して(?:いません|おりません)",
            r"(?:わかりません|分かりません|わからない(?!とき|時|場合|人|方は|なら|こと)|分からない(?!とき|時|場合|人|方は|なら|こと)|わかりかね|分かりかね|存じません|存じ上げ(?:ません|ない|ず)|知りません|把握して(?:いません|おりません)"
            r"|(?:知識|権限|能力|専門|対応|業務)[^。、]{0,4}?(?:範囲外|範囲を超え|対象外)|(?:答え|結論|判断)(?:を|は|が)(?:出|下)(?:せ|すことができ)(?:ません|ない)"
            r"|(?:私は|ai|言語モデル|アシスタント)(?:である|として|なので|ですので|であり|のため)[^。]{0,40}?(?:ません|かねます)"
            r"|(?:応じ|沿い|添い|いたし|致し|でき|し)かねます|お(?:手伝い|答え|引き受け)(?:は|を)?(?:し|いたし)ません|引き受け(?:られ|でき)(?:ません|ない)"
            r"|(?:回答|答え|返答|意見)を?(?:作成|生成|用意|述べること)(?:は|が)?でき(?:ません|ない)"
            r"|^\W*(?:不明|不詳|情報なし|該当なし|回答なし|記載なし|答えなし)(?:です|となります)?\W*$"
            r"|保有して(?:いません|おりません)|見つけられません|見つけることができ|お断り|辞退|わからない(?:です|のです)|判断しかね|判断できません|持って(?:いません|おりません)"
            r"|持ち合わせて(?:いません|おりません|いない|おらず)|アクセスできません|ありませんので、お答え)",
            r"(?:答え|説明|案内|申し上げ|申し|伝え|回答|判断|確認|特定|調べ)(?:の)?(?:し)?ようが(?:ない|なく|ありません|ございません)",
        ),
        lack=_japanese(
            rf"{_JA_SOURCE}[^。！？]{{0,60}}?(?:含まれて(?:いません|おりません|いない|おらず)|記載(?:が|は|も)?(?:されて)?(?:いません|おりません"
            rf"|ありません|ございません|がなく|されておらず|なし|いない)|見当たり(?:ません|ませんでした)|{_JA_HAS_NOT}ありません|{_JA_HAS_NOT}ございません|書かれて(?:いません|おりません"
            r"|いない)|触れ(?:て|られて)(?:いません|おりません|いない)|見つかり(?:ません|ませんでした)|述べられて(?:いません|いない)|言及(?:が|は|も)?"
            r"(?:されて|して)?(?:いません|おりません|ありません|いない)|示されて(?:いません|おりません)|載って(?:いません|おりません|いない)"
            r"|不足して|(?:説明|掲載|収録|定義|規定|明示|提供|紹介)されて(?:いません|おりません|いない|おらず)|(?:扱|取り上げ|含)(?:って|われて|られて|んで|て)(?:いません|おりません|いない)|出てきません|含みません|書いて(?:ありません|いません)|足りません|説明されて(?:いません|おりません)|明記されて(?:いません|おりません)|存在しません|確認できません|読み取れません|情報がない)",
            rf"{_JA_SOURCE}(?:の|は|では|には)[^。！？、]{{0,20}}?(?:対象外|範囲外)",
            r"(?:何も|一切|どこにも|明らかに|明確に|明示的に)(?:は)?(?:触れ|書か|述べ|言及さ|記さ|載っ|示さ|され|説明さ)[ぁ-ん]{0,3}?て(?:いません|おりません|いない|おらず)",
            rf"{_JA_SOURCE}[^。！？]{{0,60}}?(?:(?:説明|言及|記載|記述|規定|定義|明記|解説)(?:は|を)?して(?:いません|おりません|いない|おらず)"
            r"|(?:割り出せ|導き出せ|導け|見え|判明し|確定でき|見つけられ)(?:ません|ない)|見つから(?:なかった|ないため|ないので|ず、)"
            r"|(?:言及|記載|記述|説明|情報|該当箇所)(?:は|が|も)?(?:ない|なく|なかった)(?=\W|$|ため|ので|よう))",
            r"(?:答え|回答|詳細|数値|理由|日付|名前)(?:が|は|も)[^。、]{0,6}?(?:示され|書かれ|記され|述べられ|含まれ|明かされ|挙げられ)て(?:いません|いない|おらず|おりません)",
            r"(?:根拠|箇所|記述|情報|記載|答え|回答|手がかり)(?:が|は|も)[^。、]{0,4}?(?:ない|なく|無い|無く|なかった)(?:ため|ので|です|よう|、)",
            rf"(?:情報|記載|記述|言及|答え|回答|説明|該当)[^。！？]{{0,30}}?(?:見つかり|見当たり|{_JA_HAS_NOT}あり|ござい|得られ|含まれて(?:い|おり))"
            r"(?:ません|ませんでした)",
        ),
        when=r"(?:もし|仮に|万一)",
    ),
    "th": Phrases(
        refusal=(
            r"^\W*(?:ขออภัย|ขอโทษ|เสียใจ|น่าเสียดาย)",
            r"(?:ฉัน|ผม|ดิฉัน|เรา|ข้าพเจ้า)[^.!?]{0,30}?(?:ไม่สามารถ|ไม่ทราบ|ไม่รู้|ไม่มี|ไม่พบ|ไม่แน่ใจ|ไม่อาจ|ตอบไม่ได้|ช่วยไม่ได้)",
            r"ไม่สามารถ(?:ตอบ|ให้ข้อมูล|ช่วย|ระบุ|บอก|ยืนยัน)",
        ),
        lack=(
            r"(?:เอกสาร|แหล่งข้อมูล|ข้อความ|บริบท|บทความ|คู่มือ|บันทึก|ข้อมูล|หน้า|เนื้อหา|ไฟล์)[^.!?]{0,60}?"
            r"(?:ไม่ได้|ไม่มี|ไม่พบ|ไม่ปรากฏ|ไม่เพียงพอ|ไม่ครอบคลุม)",
            r"(?:ไม่มี|ไม่พบ|ไม่ปรากฏ)[^.!?]{0,30}?(?:ข้อมูล|คำตอบ|เอกสาร|รายละเอียด)",
        ),
        when=r"(?:ถ้า|หาก|เมื่อ|กรณี)",
    ),
}
"""By language code."""
