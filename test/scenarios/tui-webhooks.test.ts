import { describe, expect, test } from "bun:test"
import { type Belfry, startBelfry } from "../harness/binary"
import { missing } from "../harness/peers"
import { LARGE, openMonitor, SMALL, sendMany } from "./monitor"
import { lean } from "./serve"

/** A receiver that answers as it is told. */
function receiver() {
  const state = { status: 200, count: 0 }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      await request.text()
      state.count += 1
      return new Response(`answer \u001b[31m${state.status}`, { status: state.status })
    },
  })
  return {
    state,
    url: `http://127.0.0.1:${server.port}/hook`,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

async function subscribe(server: Belfry, url: string): Promise<void> {
  const body = JSON.stringify({ url, events: ["email.*"] })
  const response = await server.request("/v1/webhooks", { method: "POST", body })
  expect(response.status).toBe(201)
}

describe.skipIf(missing("tmux"))("webhooks in the monitor", () => {
  test("an endpoint that fails is seen to be switched off, tested, and sent what was held", async () => {
    await using server = await startBelfry({ env: lean })
    using hook = receiver()
    hook.state.status = 500
    await subscribe(server, hook.url)
    await using screen = await openMonitor(server, SMALL)
    await screen.shows("● live")
    await screen.press("2")
    await screen.until("its breaker", (text) => /active +0 +░{10} 0\/10/.test(text))
    await sendMany(server, 5, "number")
    await screen.until("it is off", (text) => /off: breaker +\d+ +▓{10} 10\/10/.test(text))
    await screen.until("what is held", (text) => /email\.\w+ +held/.test(text))
    await screen.press("3")
    await screen.until("why it waits", (text) => /webhooks +held .* circuit_breaker/.test(text))

    hook.state.status = 200
    await screen.press("2", "t")
    await screen.shows("test delivered: 200")
    const [endpoint] = (
      (await (await server.request("/v1/webhooks")).json()) as {
        data: { id: string }[]
      }
    ).data
    await server.request(`/v1/webhooks/${endpoint?.id}/enable`, { method: "POST", body: "{}" })
    await screen.until("it is on", (text) => / active +\d+ /.test(text))
    await screen.press("R", "Enter")
    await screen.shows("Send held events since 1h")
    await screen.press("y")
    await screen.shows("the replay runs as job")
    await screen.until("they are there", (text) => /email\.\w+ +success +\d\/6 +200/.test(text))
    await screen.until("none is held", (text) => / active +0 +░/.test(text))
  })

  test("an endpoint is paused and enabled by keys, and what it held goes out or waits", async () => {
    await using server = await startBelfry({ env: lean })
    using hook = receiver()
    await subscribe(server, hook.url)
    await using screen = await openMonitor(server, SMALL)
    await screen.shows("● live")
    await screen.press("2")
    await screen.until("its key", (text) => /└ .* p pause .*\? help {2}q quit/.test(text))
    await screen.press("p")
    await screen.until("a question", (text) => /Pause it, .* 7 days\? http.* y \/ n/.test(text))
    await screen.press("y")
    await screen.shows("paused; its events are held for 7 days")
    await screen.until("it is off", (text) => /off: paused .*e enable/s.test(text))
    await sendMany(server, 1, "number")
    await screen.until("three held", (text) => /off: paused +3 /.test(text))
    expect(hook.state.count).toBe(0)

    await screen.press("e")
    await screen.shows("Enable it and send 3 held events?")
    await screen.press("o")
    await screen.until("they wait", (text) =>
      /enabled; 3 held events wait: R replays them/.test(text),
    )
    await screen.until("it is on", (text) => / active +\d+ .*p pause/s.test(text))
    expect(hook.state.count).toBe(0)
    await screen.press("d", "y")
    await screen.until("by hand", (text) => /off: by hand/.test(text))
    await screen.press("e", "y")
    await screen.shows("enabled; the held events are sent now")
    await screen.until("none is held", (text) => / active +0 +░/.test(text))
    await screen.until("they are there", (text) => /email\.\w+ +success +\d\/6 +200/.test(text))
    await screen.press("q")
    await screen.shows("exit 0")
  })

  test("with a key that may only read, what it may not do is said and offered no more", async () => {
    await using server = await startBelfry({ env: lean })
    using hook = receiver()
    await subscribe(server, hook.url)
    const scopes = ["email:read", "webhooks:read"]
    const made = await server.cli("keys", "create", "--name", "reader", "--scope", scopes.join())
    const { key: api_key } = JSON.parse(made.stdout) as { key: string }
    await using screen = await openMonitor({ ...server, api_key }, SMALL)
    await screen.press("2")
    await screen.until("its endpoint", (text) => /http:\S+ +active/.test(text))
    await screen.press("p", "y")
    await screen.shows("this needs a key with the scope webhooks:write")
    await screen.until("fewer keys", (text) =>
      /└ ↑↓ move {2}Tab deliveries {2}y copy id/.test(text),
    )
    await screen.press("e")
    await screen.shows("this needs a key with the scope webhooks:write")
  })

  test("a delivery shows what was asked, what came back, and when it is tried again", async () => {
    await using server = await startBelfry({ env: lean })
    using hook = receiver()
    hook.state.status = 503
    await subscribe(server, hook.url)
    await using screen = await openMonitor(server, LARGE)
    await screen.shows("● live")
    await sendMany(server, 1, "number")
    await screen.press("2", "Tab")
    await screen.until("a failure", (text) =>
      /email\.queued .*failed +1\/6 +503 +\d+ +in \d+ s/.test(text),
    )
    await screen.press("G", "Enter")
    const shown = await screen.until("all of it", (text) =>
      ["next ", "1.  20", '"webhook-signature": ', "answer    503"].every((part) =>
        text.includes(part),
      ),
    )
    expect(shown).toContain("LAST OK") // beside it, on a large terminal
    await screen.press("G")
    await screen.shows('"type": "email.queued"')
    const before = hook.state.count
    await screen.press("r")
    await screen.shows("Attempt the delivery of")
    hook.state.status = 200
    await screen.press("y")
    await screen.shows("the delivery is attempted again")
    await screen.press("g")
    await screen.shows("answer    200")
    expect(hook.state.count).toBeGreaterThan(before)
    await screen.press("Escape", "Escape", "q")
    await screen.shows("exit 0")
  })
})
