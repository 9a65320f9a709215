import { createECDH, randomBytes } from "node:crypto"
import ece from "http_ece"

/** A browser's side of a subscription: what it gives away, and what it reads messages with. */
export function subscriber() {
  const privateKey = createECDH("prime256v1")
  const p256dh = privateKey.generateKeys("base64url")
  const auth = randomBytes(16).toString("base64url")
  return {
    keys: { p256dh, auth },
    open: (sealed: Uint8Array): Buffer =>
      ece.decrypt(Buffer.from(sealed), { version: "aes128gcm", privateKey, authSecret: auth }),
  }
}

interface PushRequest {
  path: string
  headers: Headers
  body: Uint8Array
}

type Answer = (request: PushRequest) => Response | Promise<Response>

const TAKEN = { status: 201, headers: { location: "https://push.test/m/1" } }

/** A push service on the loopback: keeps every request, and answers as it is told. */
export function pushService(answer: Answer = () => new Response(null, TAKEN)) {
  const requests: PushRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname: path } = new URL(request.url)
      const asked = { path, headers: request.headers, body: await request.bytes() }
      requests.push(asked)
      return answer(asked)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
