# Completion of @PROGRAM@. bash: eval "$(@PROGRAM@ completion bash)", or save it as
# ~/.local/share/bash-completion/completions/@PROGRAM@
# zsh: autoload -U +X bashcompinit && bashcompinit && eval "$(@PROGRAM@ completion zsh)"
_@PROGRAM@() {
    local word=${COMP_WORDS[COMP_CWORD]} key=${COMP_WORDS[1]} words="" step i
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
        while read -r i; do COMPREPLY+=("$i"); done < <(compgen -f -- "$word")
        return
    fi
    if [ "$key" = apply ]; then
        step=2
        for ((i = 2; i < COMP_CWORD; i++)); do
            [ "${COMP_WORDS[i]}" != ":" ] || step=$((i + 1))
        done
        if [ "$COMP_CWORD" -eq "$step" ]; then
            COMPREPLY=($(compgen -W "@FILTERS@ --recipe" -- "$word"))
            return
        fi
        key="apply ${COMP_WORDS[step]}"
    fi
    case "$key" in
        @KERNEL_COMMANDS@)
            if [ "$COMP_CWORD" -eq 2 ]; then
                COMPREPLY=($(compgen -W "@WITH_KERNEL@" -- "$word"))
                return
            fi
            key="$key ${COMP_WORDS[2]}"
            ;;
    esac
    case "$key ${COMP_WORDS[COMP_CWORD - 1]}" in
@VALUES@
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    case "$key" in
@OPTIONS@
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
        *) COMPREPLY=(); while read -r i; do COMPREPLY+=("$i"); done < <(compgen -f -- "$word") ;;
    esac
}
complete -o filenames -F _@PROGRAM@ @PROGRAM@
