import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto"
import type { Components } from "../../src/client/components"

/** Runs a command of the program, and waits for what comes from outside. */
interface CommandBox {
  run<Printed>(...words: string[]): Promise<Printed>
  inTime<Brought>(brought: Promise<Brought>, what: string): Promise<Brought>
}

const OWNER = "smoke-owner"

/**
 * Registers a subscription as a browser has it, gets a message at its endpoint, decrypts that with the keys of the
 * subscription alone, and acknowledges it. Throws where anything differs from what was sent.
 */
export async function pushToBrowser(box: CommandBox): Promise<void> {
  const browser = newSubscription()
  const { promise: heard, resolve } = Promise.withResolvers<Buffer>()
  using service = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      resolve(Buffer.from(await request.arrayBuffer()))
      return new Response(null, { status: 201 })
    },
  })
  await box.run("push", "public-key") // as a page asks before it subscribes
  const subscription = JSON.stringify({ endpoint: service.url.href, keys: browser.keys })
  const device = ["--user-id", OWNER, "--platform", "web", "--subscription", subscription]
  await box.run("devices", "register", ...device)
  const { id } = await box.run<Components["PushSend"]>("push", "send", "Smoke", "--to", OWNER)
  const { notification } = JSON.parse(browser.open(await box.inTime(heard, "push message came")))
  const { push_id, ack_token } = notification.data
  if (notification.title !== "Smoke" || push_id !== id)
    throw new Error(`"${notification.title}" of ${push_id} came, not "Smoke" of ${id}`)
  await box.run("push", "ack", id, "delivered", "--ack-token", ack_token)
  const told = ["events", "list", "--event", "push.delivered"]
  const [event] = await box.run<Components["EventEnvelope"][]>(...told)
  if (event?.data.push_message_id !== id) throw new Error("no event tells of it")
}

const TAG_BYTES = 16
const SALT_BYTES = 16
/** The size of a record stands behind the salt, in four bytes. */
const LENGTH_AT = SALT_BYTES + 4

/** The keys of a browser, and what it reads with them (RFC 8291, and RFC 8188 for the bytes of the body). */
function newSubscription() {
  const pair = createECDH("prime256v1")
  const own = pair.generateKeys()
  const auth = randomBytes(SALT_BYTES)
  const derive = (key: Buffer, salt: Buffer, info: Buffer | string, bytes: number) =>
    Buffer.from(hkdfSync("sha256", key, salt, info, bytes))
  return {
    keys: { p256dh: own.toString("base64url"), auth: auth.toString("base64url") },
    open(body: Buffer): string {
      const salt = body.subarray(0, SALT_BYTES)
      const begin = LENGTH_AT + 1 + body.readUInt8(LENGTH_AT)
      const theirs = body.subarray(LENGTH_AT + 1, begin)
      const info = Buffer.concat([Buffer.from("WebPush: info\0"), own, theirs])
      const key = derive(pair.computeSecret(theirs), auth, info, 32)
      const cipher = createDecipheriv(
        "aes-128-gcm",
        derive(key, salt, "Content-Encoding: aes128gcm\0", 16),
        derive(key, salt, "Content-Encoding: nonce\0", 12),
      )
      cipher.setAuthTag(body.subarray(-TAG_BYTES))
      const sealed = body.subarray(begin, -TAG_BYTES)
      const padded = Buffer.concat([cipher.update(sealed), cipher.final()])
      return padded.subarray(0, padded.lastIndexOf(2)).toString() // the delimiter of the last record
    },
  }
}
