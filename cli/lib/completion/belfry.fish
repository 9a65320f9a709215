# fish completion for belfry. Load it: belfry completion fish | source
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
