# Completes the scripts of @FOLDER@ in zsh (after compinit).
# Load it with:  source <(python eval/scripts/completion.py zsh)

typeset -g _rag_eval_folder=@FOLDER@ _rag_eval_python=@PYTHON@
typeset -ga _rag_eval_scripts=(@SCRIPTS@)

_rag_eval() {
    local place=1 script name variable type value help
    local -a typed plain described answer
    if [[ ${words[1]} != *.py ]]; then
        place=2
        while [[ ${words[place]} == -* ]]; do (( place++ )); done
    fi
    script=${words[place]/#\~\//$HOME/}
    name=${script:t}
    [[ $script == $name && $place -eq 1 ]] && script=$(whence -p -- $name)
    if (( place >= CURRENT || ! ${_rag_eval_scripts[(Ie)$name]} )) ||
        ! [[ $script -ef $_rag_eval_folder/$name ]]; then
        if [[ ${words[1]} != *.py ]] && whence _python > /dev/null; then
            _python "$@"
        else
            _files
        fi
        return
    fi
    variable=_${(U)name//[.-]/_}_COMPLETE
    typed=($name "${(@)words[place + 1,CURRENT]}")
    answer=("${(@f)$(env $variable=zsh_complete COMP_WORDS="${(F)typed}" \
        COMP_CWORD=$(( CURRENT - place )) $_rag_eval_python $_rag_eval_folder/$name 2>/dev/null)}")
    # --option=value: what stands before the value stays.
    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
    for type value help in "${(@)answer}"; do
        case $type in
            plain) if [[ $help == _ ]]; then plain+=($value); else described+=("$value:$help"); fi ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
        esac
    done
    if (( $#described )); then _describe -V unsorted described -U; fi
    if (( $#plain )); then compadd -U -V unsorted -a plain; fi
}

compdef _rag_eval python python3 @SCRIPTS@
