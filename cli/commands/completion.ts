import type { Command } from "commander"
import { lazily } from "../action"

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

Load it now, or from the start file of your shell:
  bash   source <(belfry completion bash)        in ~/.bashrc
  zsh    source <(belfry completion zsh)         in ~/.zshrc
  fish   belfry completion fish | source         in ~/.config/fish/config.fish

It completes commands, flags and their values, and the ids of what the server holds.`,
    )
    .action(lazily(async () => (await import("../completion/print")).print))
}
