import type { Command } from "commander"
import { examples, lazily } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Work that goes on after its request was answered, and the table of routes. */
export function define(program: Command): void {
  const jobs = program
    .command("jobs")
    .description("show and cancel long work in the background")
    .addHelpText("after", examples(`jobs get ${ID}`))

  jobs
    .command("get <id>")
    .description("show the progress of a job")
    .option("--wait", "wait until it ends; exit 1 if it failed, 75 at --timeout (default: 60s)")
    .addHelpText("after", examples(`jobs get ${ID}`, `jobs get ${ID} --wait --timeout 5m`))
    .action(lazily(async () => (await import("../jobs")).get))

  jobs
    .command("cancel <id>")
    .description("cancel the rest of a job; finished work stays")
    .addHelpText("after", examples(`jobs cancel ${ID} --yes`))
    .action(lazily(async () => (await import("../jobs")).cancel))

  program
    .command("routes")
    .description("list the routes of the API with their callers and scopes")
    .addHelpText("after", examples("routes", "routes --json=method,path,scope"))
    .action(lazily(async () => (await import("../routes")).routes))
}
