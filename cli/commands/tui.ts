import type { Command } from "commander"
import { examples, lazily } from "../lib/run"

/** The monitor for a terminal. */
export function define(program: Command): void {
  program
    .command("tui")
    .description("watch messages, webhooks and the queue live")
    .addHelpText(
      "after",
      `${examples("tui", "tui --profile prod")}

Keys: 1 Messages, 2 Webhooks, 3 Queue, / filter, : command, ? help, q quit.
Without a terminal, use \`belfry emails tail --ndjson\`.`,
    )
    .action(lazily(async () => (await import("../tui/monitor")).open))
}
