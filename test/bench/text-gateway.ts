/**
 * A gateway that answers as the API of Twilio does, and counts: `text-gateway.ts` prints its address. GET
 * tells how many texts came, and when the last one did. In a process of its own, as a real one is.
 */
let count = 0
let at = 0

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (request.method === "GET") return Response.json({ count, at })
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

console.log(`http://127.0.0.1:${server.port}`)

export {}
