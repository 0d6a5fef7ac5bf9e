# Completes the scripts of @FOLDER@ in fish.
# Load it with:  python eval/scripts/completion.py fish | source

set -g _rag_eval_folder @FOLDER@
set -g _rag_eval_python @PYTHON@
set -g _rag_eval_scripts @SCRIPTS@

# Prints our script and the words behind it, a line each; fails when none was typed.
function _rag_eval_words
    set -l typed (commandline -opc)
    if not string match -q '*.py' -- $typed[1]
        set -e typed[1]
        while set -q typed[1]; and string match -q -- '-*' $typed[1]
            set -e typed[1]
        end
    end
    set -q typed[1]; or return 1
    set -l name (string split -r -m 1 / -- $typed[1])[-1]
    contains -- $name $_rag_eval_scripts; or return 1
    set -l script (string replace -r '^~/' "$HOME/" -- $typed[1])
    if test "$script" = "$name"; and not test -e $script
        set script (command -s $name)
    end
    test (realpath -- $script 2>/dev/null) = (realpath -- $_rag_eval_folder/$name); or return 1
    printf '%s\n' $name $typed[2..-1]
end

function _rag_eval_ours
    _rag_eval_words >/dev/null
end

function _rag_eval
    set -l typed (_rag_eval_words)
    set -l variable _(string upper (string replace -a . _ (string replace -a - _ $typed[1])))_COMPLETE
    set -l current (commandline -ct)
    set -l before ""
    if string match -q -- '--*=*' $current
        set before (string replace -r '=.*' '=' -- $current)
    end
    set -l quoted (string escape -- $typed)
    for line in (env $variable=fish_complete COMP_WORDS="$quoted $current" COMP_CWORD="$current" \
            $_rag_eval_python $_rag_eval_folder/$typed[1] 2>/dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case plain
                echo $before$parts[2]
            case dir
                __fish_complete_directories (string replace -- $before "" $current)
            case file
                __fish_complete_path (string replace -- $before "" $current)
        end
    end
end

for name in python python3 $_rag_eval_scripts
    complete -c $name -n _rag_eval_ours -f -a '(_rag_eval)'
end
