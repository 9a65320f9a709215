# bash completion for belfry. Load it: source <(belfry completion bash)
_belfry() {
  local line current="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
      return
    fi
    COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
  done < <("${COMP_WORDS[0]}" __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nosort -F _belfry belfry 2>/dev/null || complete -F _belfry belfry
