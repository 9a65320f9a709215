/**
 * The gateway of a bench and the clients of its streams, in a process of their own. It prints one line for each command:
 * `gateway` its URL, `first COUNT` how many ms after the gateway's first piece each of so many streams had its first
 * token; `at URL KEY PROJECT` names the server, `open COUNT` opens streams that stay, and `close` ends them.
 */
import { openaiGateway } from "../fakes/openai-gateway"

/** As fast as a middling model: 20 tokens a second. */
const PAUSE_MS = 50
const PIECES = Array.from({ length: 2000 }, (_, at) => (at === 0 ? '{"name":"' : "word "))

/** By the text of the brief: when the gateway wrote its first piece. */
const written = new Map<string, number>()
const gateway = await openaiGateway(({ prompt }) => {
  const [brief = ""] = /brief-\d+/.exec(prompt) ?? []
  written.set(brief, performance.now())
  return { pieces: PIECES, pause_ms: PAUSE_MS }
})

let [url = "", key = "", project_id = ""] = [] as string[]
let briefs = 0
let stop = new AbortController()
let running: Promise<unknown>[] = []

/** Resolves at the first token, with the reader of what follows. */
async function begun(signal: AbortSignal) {
  const brief = `brief-${++briefs}`
  const answer = await fetch(`${url}/v1/ai/templates/draft`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ channel: "email", project_id, brief }),
    signal,
  })
  const reader = answer.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  const took = performance.now() - (written.get(brief) ?? Number.NaN)
  const text = new TextDecoder().decode(value)
  if (!text.startsWith("event: token")) throw new Error(`${answer.status}: ${text}`)
  return { took, reader }
}

/** A stream takes the place of each that ends. */
async function keepOpen({ reader }: Awaited<ReturnType<typeof begun>>, signal: AbortSignal) {
  while (!(await reader?.read())?.done);
  await keepOpen(await begun(signal), signal)
}

for await (const line of console) {
  const [command, first = "", ...rest] = line.split(" ")
  let told: unknown = command
  if (command === "gateway") told = gateway.url
  if (command === "at") [url = "", key = "", project_id = ""] = [first, ...rest]
  if (command === "first") {
    const delays: number[] = []
    while (delays.length < Number(first)) {
      const one = new AbortController()
      delays.push((await begun(one.signal)).took)
      one.abort()
    }
    told = JSON.stringify(delays)
  }
  if (command === "open") {
    stop = new AbortController()
    const { signal } = stop
    const streams = Array.from({ length: Number(first) }, () => begun(signal))
    running = (await Promise.all(streams)).map((stream) => keepOpen(stream, signal))
  }
  if (command === "close") {
    stop.abort()
    await Promise.allSettled(running)
  }
  console.log(told)
}
