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

Load it in this shell, or in the start file of your shell:
  bash   source <(belfry completion bash)        in ~/.bashrc
  zsh    source <(belfry completion zsh)         in ~/.zshrc
  fish   belfry completion fish | source         in ~/.config/fish/config.fish

It completes commands, flags, values of flags, and ids from the server.`,
    )
    .action(lazily(async () => (await import("../completion/print")).print))
}
