import bash from "../lib/completion/belfry.bash" with { type: "text" }
import fish from "../lib/completion/belfry.fish" with { type: "text" }
import zsh from "../lib/completion/belfry.zsh" with { type: "text" }
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { own } from "../lib/resource"

/**
 * What each shell loads. The scripts know nothing of the commands: they hand over what was typed,
 * and `belfry __complete` answers one candidate a line, or `:files` where a file belongs. Bash splits
 * words at `:` and `=` too, so it hands over the whole line.
 */
const scripts = new Map(Object.entries({ bash, zsh, fish }))

/** The script as it is, in a pipe and on a terminal alike. */
const print: Action<object> = async ({ output }, _, name = "") => {
  const script = scripts.get(name)
  if (script === undefined)
    throw usage(`SHELL: "${name}" is not one of ${[...scripts.keys()].join(", ")}`)
  await output.raw(script)
}

export const completionRow = own("completion <shell>", print, {
  about: "print the completion script of bash, zsh or fish",
  word: "bash",
  end: `Load it in this shell, or in the start file of your shell:
  bash   source <(belfry completion bash)        in ~/.bashrc
  zsh    source <(belfry completion zsh)         in ~/.zshrc
  fish   belfry completion fish | source         in ~/.config/fish/config.fish

It completes commands, flags, values of flags, and ids from the server.`,
})
