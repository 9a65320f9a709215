/**
 * A gateway that answers as the API of Twilio does, and counts: `text-gateway.ts` prints its address. GET
 * tells how many texts came, and when the last one did. After PUT /hold it answers no text until PUT /go. In
 * a process of its own, as a real one is.
 */
let count = 0
let at = 0
let gate: PromiseWithResolvers<void> | undefined

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (request.method === "GET") return Response.json({ count, at })
    if (request.method === "PUT") return turn(request.url.endsWith("/hold"))
    await gate?.promise
    const form = new URLSearchParams(await request.text())
    count++
    at = Date.now()
    return Response.json(
      {
        account_sid: "AC00000000000000000000000000000000",
        api_version: "2010-04-01",
        body: form.get("Body"),
        date_created: "Sun, 29 Nov 2026 12:00:00 +0000",
        date_sent: null,
        date_updated: "Sun, 29 Nov 2026 12:00:00 +0000",
        direction: "outbound-api",
        error_code: null,
        error_message: null,
        from: form.get("From"),
        messaging_service_sid: null,
        num_media: "0",
        num_segments: "1",
        price: null,
        price_unit: "USD",
        sid: `SM${count.toString(16).padStart(32, "0")}`,
        status: "queued",
        subresource_uris: {},
        to: form.get("To"),
        uri: "/2010-04-01/Accounts/AC0/Messages/SM0.json",
      },
      { status: 201 },
    )
  },
})

function turn(is_held: boolean) {
  gate?.resolve()
  gate = is_held ? Promise.withResolvers() : undefined
  return new Response()
}

console.log(`http://127.0.0.1:${server.port}`)

export {}
