/**
 * The limit of accepting: the runtime's own server, which reads the same JSON and answers as much,
 * with nothing in between. A process of its own; prints its url.
 */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { to } = (await request.json()) as { to: unknown }
    const id = Bun.randomUUIDv7()
    const rfc_message_id = `<${id}@bench.test>`
    const created_at = new Date().toISOString()
    const data = { id, status: "queued", rfc_message_id, to, scheduled_at: null, created_at }
    return Response.json({ id, data, meta: { request_id: id } }, { status: 201 })
  },
})
console.log(server.url.href)
