import type { ServerWebSocket } from "bun"

/**
 * A push service as a browser of Mozilla speaks to it (autopush): what an application's server posts to the
 * endpoint of a subscription comes to its browser by a WebSocket.
 */
export function startWebPushService() {
  const sockets = new Map<string, ServerWebSocket>()
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, own): Promise<Response | undefined> {
      if (own.upgrade(request, { data: undefined })) return undefined
      const channelID = new URL(request.url).pathname.slice(1)
      const socket = sockets.get(channelID)
      if (request.method !== "POST" || !socket) return new Response(null, { status: 410 })
      const version = crypto.randomUUID()
      const data = Buffer.from(await request.arrayBuffer()).toString("base64url")
      const headers = { encoding: request.headers.get("content-encoding") }
      const told = { messageType: "notification", channelID, version, data, headers }
      socket.send(JSON.stringify(told))
      return new Response(null, { status: 201, headers: { location: `${server.url}m/${version}` } })
    },
    websocket: {
      message(socket, text) {
        const { messageType, channelID } = JSON.parse(String(text))
        const answer = { messageType, status: 200, channelID }
        if (messageType === "register") sockets.set(channelID, socket)
        const own =
          messageType === "hello"
            ? { uaid: crypto.randomUUID().replaceAll("-", ""), use_webpush: true, broadcasts: {} }
            : { pushEndpoint: `${server.url}${channelID}` }
        if (["hello", "register", "unregister"].includes(messageType))
          socket.send(JSON.stringify({ ...answer, ...own }))
        else if (messageType === undefined) socket.send("{}") // it asks whether the line is alive
      },
    },
  })
  return {
    /** For `dom.push.serverURL`. */
    url: `ws://127.0.0.1:${server.port}/`,
    /** The subscriptions that it knows now. */
    subscriptions: sockets,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
