import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { type Belfry, startBelfry } from "../harness/binary"
import { locate, missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { postfixReceiver, type Receiver, withoutReceiver } from "../harness/postfix-receiver"
import type { PostfixSettings } from "../harness/scratch-postfix"
import { eventsOf, eventTypes, get, reaches, send, until } from "./mails"
import { relaySettings } from "./serve"

const FRIEND = "ann@friends.test"
const SHOP = "shop@example.test"
const HOST = "mx.belfry.test"
const GONE = "550 5.1.1 User unknown in local recipient table"
const FULL = "452 4.2.2 The mailbox is full"

/** A mail server that refuses every recipient, for good (`-f`, `-B`) or for now (`-r`, `-b`). */
async function refusing(...words: [how: string, reply: string, text: string]) {
  const port = await freePort()
  const [how, reply, text] = words
  const child = Bun.spawn({
    cmd: [
      ...[locate("smtp-sink") ?? "", "-u", "postfix", how, "RCPT", reply, text],
      ...[`127.0.0.1:${port}`, "10"],
    ],
    stdio: ["ignore", "ignore", "ignore"],
  })
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/** A Postfix that relays for this machine, and a server that sends by it and takes its reports. */
async function relayed(
  own: (ports: { inbound: number }) => PostfixSettings,
): Promise<AsyncDisposable & { relay: Receiver; server: Belfry }> {
  const inbound = await freePort()
  const relay = await postfixReceiver([FRIEND], {
    mynetworks: "127.0.0.0/8",
    smtpd_relay_restrictions: "permit_mynetworks, reject",
    default_transport: "smtp",
    disable_dns_lookups: "yes",
    ...own({ inbound }),
  })
  const env = relaySettings(relay.port, {
    BELFRY_SMTP_INBOUND_LISTEN: `127.0.0.1:${inbound}`,
    BELFRY_DOMAINS_HOST: HOST,
  })
  const server = await startBelfry({ env })
  return {
    ...{ relay, server },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await relay[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(withoutReceiver() || missing("smtp-sink"))(
  "by a relay that is a real Postfix,",
  () => {
    let it: Awaited<ReturnType<typeof relayed>>
    const stack = new AsyncDisposableStack()

    beforeAll(async () => {
      const gone = stack.use(await refusing("-f", "-B", GONE))
      const full = stack.use(await refusing("-r", "-b", FULL))
      it = stack.use(
        await relayed(({ inbound }) => ({
          ...{ minimal_backoff_time: "1s", maximal_backoff_time: "1s", queue_run_delay: "1s" },
          delay_warning_time: "1s",
          transport_maps: `inline:{ {gone.test=smtp:[127.0.0.1]:${gone.port}} {full.test=smtp:[127.0.0.1]:${full.port}} {${HOST}=smtp:[127.0.0.1]:${inbound}} }`,
        })),
      )
    })
    afterAll(() => stack.disposeAsync())

    test("a mail that it delivered is delivered here, too, and nobody is told of a received mail", async () => {
      const id = await send(it.server, { from: SHOP, to: FRIEND })
      await reaches(it.server, id, "delivered")
      expect(await eventTypes(it.server, id)).toEqual([
        "email.queued",
        "email.sent",
        "email.delivered",
      ])
      const [mail = ""] = await it.relay.mails(FRIEND, 1)
      expect(mail).toMatch(new RegExp(`^Return-Path: <b\\+[a-z0-9]+@${HOST}>`))
      const { stdout } = await it.server.cli("events", "list", "--event", "email.received")
      expect(JSON.parse(stdout)).toEqual([])
    })

    test("a mail that nobody takes is bounced, and its recipient suppressed", async () => {
      const to = "bob@gone.test"
      const id = await send(it.server, { from: SHOP, to })
      await reaches(it.server, id, "bounced")
      expect((await eventsOf(it.server, id)).at(-1)).toMatchObject({
        ...{ type: "email.bounced", bounce_type: "Permanent", bounce_subtype: "NoEmail" },
        detail: { response: expect.stringContaining("User unknown") },
      })
      const check = await get<{ suppressed: boolean }>(
        it.server,
        `/v1/suppressions/check?email=${to}`,
      )
      expect(check.suppressed).toBe(true)
    })

    test("a mail that waits there is told of once", async () => {
      const id = await send(it.server, { from: SHOP, to: "kim@full.test" })
      const types = () => eventTypes(it.server, id)
      await until("the delay", async () => (await types()).includes("email.soft_bounced"))
      await Bun.sleep(3_000) // it tries every second, and tells of it again at the end only
      expect(await types()).toEqual(["email.queued", "email.sent", "email.soft_bounced"])
      expect((await eventsOf(it.server, id)).at(-1)).toMatchObject({
        bounce_subtype: "MailboxFull",
      })
    })
  },
)

describe.skipIf(withoutReceiver())("a relay that takes authors of one domain alone", () => {
  test.each(["no", "yes"])(
    "gets the author, and sends once (smtpd_delay_reject = %s)",
    async (delay) => {
      await using it = await relayed(() => ({
        smtpd_delay_reject: delay,
        smtpd_sender_restrictions: "check_sender_access inline:{example.test=OK}, reject",
      }))
      for (const count of [1, 2]) {
        const id = await send(it.server, { from: SHOP, to: FRIEND })
        await reaches(it.server, id, "sent")
        const mails = await it.relay.mails(FRIEND, count)
        expect(mails).toHaveLength(count)
        for (const mail of mails) expect(mail).toStartWith(`Return-Path: <${SHOP}>`)
      }
      expect(it.relay.log().match(/reject: .*Sender address rejected/g)).toHaveLength(1)
      expect(it.server.stderr.all.join("\n")).toContain("A relay refuses our return path.")
    },
  )
})
