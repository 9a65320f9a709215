/** The names of the shells, as `belfry completion` takes them. */
export const shells = ["bash", "zsh", "fish"] as const

export type Shell = (typeof shells)[number]

/**
 * What each shell loads. The scripts know nothing of the commands: they hand over what was typed,
 * and `belfry __complete` answers one candidate a line, or `:files` where a file belongs.
 */
export const scripts: Record<Shell, string> = {
  // Bash splits words at : and = too, so the whole line goes over, and comes back from that split on.
  bash: `# bash completion for belfry. Load it: source <(belfry completion bash)
_belfry() {
  local line current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
      return
    fi
    COMPREPLY+=("$(printf '%q' "\${line%%$'\\t'*}")")
  done < <("\${COMP_WORDS[0]}" __complete bash "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nosort -F _belfry belfry 2>/dev/null || complete -F _belfry belfry
`,
  zsh: `#compdef belfry
# zsh completion for belfry. Load it: source <(belfry completion zsh)
_belfry() {
  local line
  local -a found
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      _files
      return
    fi
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <("\${words[1]}" __complete zsh "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  _describe -V 'belfry' found
}
if [[ $funcstack[1] == _belfry ]]; then
  _belfry "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _belfry belfry
fi
`,
  fish: `# fish completion for belfry. Load it: belfry completion fish | source
function __belfry_complete
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  for line in ($program __complete fish $words (commandline -ct) 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c belfry -e
complete -c belfry -f -k -a '(__belfry_complete)'
`,
}
