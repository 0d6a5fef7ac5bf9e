# Completes the scripts of @FOLDER@ in bash.
# Load it with:  source <(python eval/scripts/completion.py bash)

_rag_eval_folder=@FOLDER@
_rag_eval_python=@PYTHON@
_rag_eval_scripts=" @SCRIPTS@ "
_rag_eval_others=$(complete -p python 2>/dev/null | sed -n 's/.* -F \([^ ]*\) .*/\1/p')
[[ $_rag_eval_others == _rag_eval* ]] && _rag_eval_others=

# The place of our script among the words typed so far; fails when there is none before the cursor.
_rag_eval_place() {
    local place=0 script name
    if [[ ${COMP_WORDS[0]} != *.py ]]; then
        place=1
        while [[ ${COMP_WORDS[place]} == -* ]]; do place=$((place + 1)); done
    fi
    [[ $place -lt $COMP_CWORD ]] || return 1
    script=${COMP_WORDS[place]/#\~\//$HOME/}
    name=${script##*/}
    [[ $_rag_eval_scripts == *" $name "* ]] || return 1
    # By its bare name it comes from PATH; any other path must be the very file.
    [[ $script == "$name" && $place -eq 0 ]] && script=$(type -P -- "$name")
    [[ $script -ef $_rag_eval_folder/$name ]] || return 1
    echo "$place"
}

_rag_eval() {
    local place name words count i joins type value variable
    COMPREPLY=()
    if ! place=$(_rag_eval_place); then
        if [[ -n $_rag_eval_others ]]; then
            "$_rag_eval_others" "$@"
        else
            compopt -o bashdefault -o default 2>/dev/null
        fi
        return
    fi
    name=${COMP_WORDS[place]##*/}
    # Bash parts words at "="; the script wants --option=value as one.
    words=("$name")
    count=1
    joins=
    for ((i = place + 1; i <= COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == "=" && $count -gt 1 ]]; then
            words[count - 1]+="="
            joins=1
        elif [[ -n $joins ]]; then
            words[count - 1]+=${COMP_WORDS[i]}
            joins=
        else
            words[count]=${COMP_WORDS[i]}
            count=$((count + 1))
        fi
    done
    variable=$(echo "_${name//[.-]/_}_COMPLETE" | tr '[:lower:]' '[:upper:]')
    while IFS=, read -r type value; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
        esac
    done < <(
        IFS=$'\n'
        env "$variable=bash_complete" COMP_WORDS="${words[*]}" COMP_CWORD=$((count - 1)) \
            "$_rag_eval_python" "$_rag_eval_folder/$name" 2>/dev/null
    )
}

complete -o nosort -F _rag_eval python python3 @SCRIPTS@ 2>/dev/null ||
    complete -F _rag_eval python python3 @SCRIPTS@
