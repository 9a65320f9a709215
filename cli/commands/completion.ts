import type { Command } from "commander"
import { scripts, shells } from "../lib/completion/scripts"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { run } from "../lib/run"

/** Completion for the shells: made from the tree of commands, with ids from the server. */
export function define(program: Command): void {
  program
    .command("completion <shell>")
    .description("print the completion script of bash, zsh or fish")
    .addHelpText(
      "after",
      `
Example:
  $ belfry completion bash

Load it in this shell, or in the start file of your shell:
  bash   source <(belfry completion bash)        in ~/.bashrc
  zsh    source <(belfry completion zsh)         in ~/.zshrc
  fish   belfry completion fish | source         in ~/.config/fish/config.fish

It completes commands, flags, values of flags, and ids from the server.`,
    )
    .action(run(print))
}

/** The script as it is, in a pipe and on a terminal alike. */
export const print: Action<object> = async ({ output }, _, name = "") => {
  const shell = shells.find((one) => one === name)
  if (!shell) throw usage(`SHELL: "${name}" is not one of ${shells.join(", ")}`)
  await output.raw(scripts[shell])
}
