/**
 * What a delivered message costs the machine: `BELFRY_TEST_BINARY=… bun test/bench/message-cost.ts`
 * prints one line of JSON. Writes count as the kernel counts them, and space as `dbstat` does. Run it
 * in turns with the version before.
 */
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { oneLetter } from "./mail"
import { FROM, relayTo } from "./relayed"
import { scratchFolder } from "./scratch"
import { databaseOf, initialise, serve } from "./serving"
import { countingSink } from "./sink"
import { post } from "./wrk"

const BYTES = 4096
const CONNECTIONS = 20
const [warm_up = 4, seconds = 6] = process.argv.slice(2).map(Number)

await using sink = await countingSink()
using scratch = scratchFolder()
const key = await initialise(scratch.path)
await using server = await serve(scratch.path, key, {
  ...relayTo(sink.port),
  BELFRY_SENDING_DOMAINS: "bench.test",
})
const body = oneLetter(scratch.path, FROM, BYTES)
const send = async (length: number) => {
  const load = { url: `${server.url}/v1/emails`, headers: server.headers, body, seconds: length }
  const before = sink.messages()
  const { answered } = await post({ ...load, connections: CONNECTIONS })
  await sink.received(before + answered)
  return answered
}

const warm = await send(warm_up)
const before = used(server.pid)
const messages = await send(seconds)
const after = used(server.pid)
await server.stop()

using database = databaseOf(scratch.path)
const trees = database
  .query("SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY 2 DESC")
  .all() as { name: string; bytes: number }[]
const each = (bytes: number) => Math.round(bytes / (warm + messages))
/** Below that it is the empty page of a table that no message uses. */
const LEAST_BYTES = 10
console.log(
  JSON.stringify({
    messages,
    cpu_us: Math.round((after.cpu_us - before.cpu_us) / messages),
    written_pages: Number(((after.written - before.written) / 4096 / messages).toFixed(2)),
    file_bytes: each(statSync(join(scratch.path, "data", "belfry.db")).size),
    trees: trees.filter(({ bytes }) => each(bytes) >= LEAST_BYTES).length,
    bytes_by_tree: Object.fromEntries(
      trees.flatMap(({ name, bytes }) => (each(bytes) >= LEAST_BYTES ? [[name, each(bytes)]] : [])),
    ),
  }),
)

/** Processor time of all threads, and bytes handed to the kernel for disks. */
function used(pid: number) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  const ticks = Number(fields[11]) + Number(fields[12]) // utime and stime, a hundredth of a second each
  const written = /^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]
  return { cpu_us: ticks * 10_000, written: Number(written) }
}
