/**
 * `bun stream-lane.ts URL COUNT`: so many clients of the stream. Prints "open"; after a line of input "complete"
 * when each has heard every event up to the end of the feed, once and in order, else "broken" and why.
 */
import { argv } from "node:process"

const [url = "", count = "1"] = argv.slice(2)
const headers = { authorization: process.env.AUTHORIZATION ?? "" }

const heard = Array.from({ length: Number(count) }, () => [] as string[])
let closed = 0

const ID = /"id":"([^"]+)"/

await Promise.all(
  heard.map((ids) => {
    const address = `${url.replace(/^http/, "ws")}/v1/events/stream`
    const options = { protocols: ["svc.events.v1"], headers }
    const socket = new WebSocket(address, options as unknown as string[])
    socket.onmessage = ({ data }) => {
      const frame = String(data)
      if (frame.startsWith('{"type":"event"')) ids.push(ID.exec(frame)?.[1] ?? "")
    }
    socket.onclose = () => closed++
    return new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = reject
    })
  }),
)
console.log("open")
for await (const _ of console) {
  console.log(await result())
  break
}
process.exit(0)

async function result(): Promise<string> {
  const last = await lastOfFeed()
  const deadline = performance.now() + 50_000
  while (heard.some((ids) => ids.at(-1) !== last)) {
    if (closed > 0) return `broken: ${closed} of them were closed`
    if (performance.now() > deadline) return "broken: the last event did not come"
    await Bun.sleep(20)
  }
  const first = heard[0] ?? []
  if (new Set(first).size !== first.length) return "broken: an event came twice"
  const is_same = heard.every((ids) => ids.join() === first.join())
  return is_same ? "complete" : "broken: they heard different events"
}

/** Once nothing happens any more. */
async function lastOfFeed(): Promise<string | undefined> {
  let last: string | undefined
  for (let same = 0; same < 5; ) {
    const answer = await fetch(`${url}/v1/events?before=&limit=1`, { headers })
    const { data } = (await answer.json()) as { data: { id: string }[] }
    same = data[0]?.id === last ? same + 1 : 0
    last = data[0]?.id
    await Bun.sleep(100)
  }
  return last
}
