#compdef belfry
# zsh completion for belfry. Load it: source <(belfry completion zsh)
_belfry() {
  local line
  local -a found
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      _files
      return
    fi
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <("${words[1]}" __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  _describe -V 'belfry' found
}
if [[ $funcstack[1] == _belfry ]]; then
  _belfry "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _belfry belfry
fi
