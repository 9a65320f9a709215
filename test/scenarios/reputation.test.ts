import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { get, until } from "./mails"
import { lean } from "./serve"

/** Under `up` bad rates have no consequences, unless they are asked for. */
const enforced = { ...lean, BELFRY_REPUTATION_ENFORCED: "true" }

const FROM = "me@mailbox.test"

interface Answer {
  status: number
  headers: Headers
  body: { data: { results: { id?: string; error?: { code: string } }[] }; error: Refusal }
}

interface Refusal {
  code: string
  details: { reason: string; bounce_rate: number; complaint_rate: number; retry_after?: number }
}

async function post(server: Belfry, path: string, body: object): Promise<Answer> {
  const headers = { "content-type": "application/json" }
  const response = await server.request(path, {
    ...{ method: "POST", body: JSON.stringify(body), headers },
  })
  const answer = (await response.json()) as Answer["body"]
  return { status: response.status, headers: response.headers, body: answer }
}

let number = 0

/** Each address is another one: an address that bounced is on the suppression list. */
const bouncing = () => {
  number += 1
  return { from: FROM, to: `bounce+${number}@mailbox.test`, subject: "Hi", text: "hello" }
}

const burst = (server: Belfry, size: number) =>
  post(server, "/v1/emails/batch", { messages: Array.from({ length: size }, bouncing) })

const statusOf = ({ headers }: Answer) => headers.get("x-account-sending-status")

/** The last reply of a mail that is submitted by SMTP. */
async function submit(server: Belfry): Promise<string> {
  using it = await SmtpDialogue.open(server.smtp.submission ?? 0)
  await it.say("EHLO me.test")
  await it.starttls()
  await it.say("EHLO me.test")
  await it.say(plainLogin("svc", server.api_key))
  await it.say(`MAIL FROM:<${FROM}>`)
  const taken = await it.say("RCPT TO:<ann@mailbox.test>")
  if (!taken.startsWith("250 ")) return taken
  await it.say("DATA")
  return await it.say(`From: ${FROM}\r\nSubject: Hi\r\n\r\nhello\r\n.`)
}

interface Reputation {
  status: string
  sent: number
  bounced: number
  bounce_rate: number
  rejected_share: number
}

const reputation = (server: Belfry) => get<Reputation>(server, "/v1/accounts/me/reputation")

test("a burst of simulator bounces throttles, then freezes, until the operator lifts it", async () => {
  const home = makeHome()
  let server = await startBelfry({ env: enforced, home })
  try {
    for (const size of [100, 100]) expect((await burst(server, size)).status).toBe(200)
    await until(
      "the account is throttled",
      async () => (await reputation(server)).status === "throttled",
    )
    const { bounce_rate, rejected_share } = await reputation(server)
    expect([bounce_rate, rejected_share]).toEqual([1, 0.9])

    const replies = new Set<string>()
    await until("a mail by SMTP is refused", async () => {
      replies.add((await submit(server)).slice(0, 27))
      return replies.has("451 4.7.1 account_throttled")
    })
    const single: Answer[] = []
    await until("a send is refused", async () => {
      single.push(await post(server, "/v1/emails", bouncing()))
      return single.at(-1)?.status === 429
    })
    const refused = single.at(-1)
    expect(refused?.body.error).toMatchObject({
      code: "account_throttled",
      details: { bounce_rate: expect.any(Number), complaint_rate: 0, retry_after: 60 },
    })
    expect(refused?.headers.get("retry-after")).toBe("60")

    const codes = new Set<string | undefined>()
    await until("the account is frozen", async () => {
      const answer = await burst(server, 100)
      for (const { error } of answer.body.data?.results ?? []) codes.add(error?.code)
      return answer.status === 403
    })
    expect([...codes].sort()).toEqual(["account_throttled", undefined])

    const frozen = await post(server, "/v1/emails", bouncing())
    expect([frozen.status, frozen.body.error.code, statusOf(frozen)]).toEqual([
      ...[403, "account_frozen", "frozen"],
    ])
    expect(frozen.headers.get("x-account-sending-status-reason")).toMatch(
      /^bounce_rate=[\d.]+%;threshold=10%;window=7d$/,
    )
    expect(await submit(server)).toStartWith("550 5.7.1 account_frozen: ")
    expect(await reputation(server)).toMatchObject({ status: "frozen" })

    await server.stop()
    server = await startBelfry({ env: enforced, home })
    expect((await post(server, "/v1/emails", bouncing())).status).toBe(403)
    const { stdout, code } = await server.cli("events", "list", "--event", "account.*")
    const told = JSON.parse(stdout) as { data: { from: string; to: string } }[]
    expect([code, told.map(({ data }) => `${data.from}-${data.to}`).sort()]).toEqual([
      ...[0, ["active-throttled", "throttled-frozen"]],
    ])

    const accounts = JSON.parse(
      (await server.cli("admin", "accounts", "--data-dir", server.data_dir)).stdout,
    ) as { id: string }[]
    const own = [accounts[0]?.id ?? "", "--reason", "the list was cleaned"]
    const lifted = await server.cli("admin", "unfreeze", ...own, "--data-dir", server.data_dir)
    expect([lifted.code, JSON.parse(lifted.stdout).sending_status]).toEqual([0, "active"])
    const good = { ...bouncing(), to: "ann@mailbox.test" }
    expect((await post(server, "/v1/emails", good)).status).toBe(201)
    expect(await submit(server)).toStartWith("250 2.0.0 ")
    expect(await reputation(server)).toMatchObject({ status: "active", bounced: 0 })
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
})

interface Reputed {
  held: { tag: string; waiting: number }[]
}

test("a tag that a recipient reports as spam is held alone, until it is released", async () => {
  await using server = await startBelfry({ env: enforced })
  const mail = (to: string, tags: string[]) => ({
    from: FROM,
    to,
    subject: "Hi",
    text: "hello",
    tags,
  })
  const send = (to: string, tags: string[]) => post(server, "/v1/emails", mail(to, tags))
  const readers = Array.from({ length: 50 }, (_, at) => mail(`ann+${at}@mailbox.test`, ["news"]))
  const first = { messages: [...readers, mail("complain@mailbox.test", ["news"])] }
  expect((await post(server, "/v1/emails/batch", first)).status).toBe(200)
  const held = async () => (await get<Reputed>(server, "/v1/accounts/me/reputation")).held
  await until("the tag is held", async () => (await held()).length > 0)

  const [news, receipt] = [
    await send("ann@mailbox.test", ["news"]),
    await send("ben@mailbox.test", []),
  ]
  const statusOf = async ({ body }: Answer) => {
    const { id } = body as unknown as { id: string }
    const email = await get<{ status: string; status_reason: string }>(server, `/v1/emails/${id}`)
    return `${email.status} ${email.status_reason}`
  }
  await until("other mail is delivered", async () => (await statusOf(receipt)) === "delivered null")
  await until("its mail waits", async () => (await statusOf(news)) === "queued held_by_complaints")
  expect(await held()).toMatchObject([{ tag: "news", waiting: 1 }])

  const released = await server.cli("reputation", "release", "--tag", "news")
  expect([released.code, JSON.parse(released.stdout)]).toEqual([0, { released: 1 }])
  await until("it is delivered", async () => (await statusOf(news)) === "delivered null")
  expect(await held()).toEqual([])
})
