import type { Command } from "commander"
import { examples, lazily } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Work that goes on after its request was answered, and the table of routes. */
export function define(program: Command): void {
  const jobs = program
    .command("jobs")
    .description("long work that goes on in the background")
    .addHelpText("after", examples(`jobs get ${ID}`))

  jobs
    .command("get <id>")
    .description("how far a job is")
    .option("--wait", "until it ends: exit 1 when it failed, 75 at --timeout (default: 60s)")
    .addHelpText("after", examples(`jobs get ${ID}`, `jobs get ${ID} --wait --timeout 5m`))
    .action(lazily(async () => (await import("../jobs")).get))

  jobs
    .command("cancel <id>")
    .description("leave the rest of it undone; what was done stays")
    .addHelpText("after", examples(`jobs cancel ${ID} --yes`))
    .action(lazily(async () => (await import("../jobs")).cancel))

  program
    .command("routes")
    .description("every route of the API, with its callers and scope")
    .addHelpText("after", examples("routes", "routes --json=method,path,scope"))
    .action(lazily(async () => (await import("../routes")).routes))
}
