import { join } from "node:path"
import { program } from "../harness/program"
import { environment, freshHome } from "./belfry"
import { belfry } from "./lines"

/** `belfry up` on free ports, and two people beside it, each with a home of his own. */
export async function box(more: Record<string, string> = {}) {
  const env = environment(more)
  const home = env.HOME ?? ""
  const child = Bun.spawn([...program, "up", "--json", "--port", "0"], {
    env,
    stdout: "pipe",
    stderr: Bun.file(join(home, "log")),
  })
  const { value } = await child.stdout.getReader().read()
  const first = new TextDecoder().decode(value).split("\n")[0] ?? ""
  const { url, data_dir, setup_token, api_key } = JSON.parse(first) as Record<string, string>
  if (!url || !data_dir) throw new Error(`up said ${first}`)
  const at = (home: string) => (words: string[], stdin?: string) =>
    belfry(words, { env: { HOME: home }, ...(stdin !== undefined && { stdin }) })
  return {
    /** Where it keeps everything, its log too. */
    home,
    url,
    data_dir,
    api_key: api_key ?? "",
    setup_token: setup_token ?? "",
    ann: at(freshHome()),
    kim: at(freshHome()),
    /** Resolves when it has ended. */
    async stop() {
      child.kill("SIGTERM")
      await child.exited
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL")
      await child.exited
    },
  }
}
