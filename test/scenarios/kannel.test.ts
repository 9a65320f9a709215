import { expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { codeBlocks } from "../docs/code-blocks"
import { type Belfry, binary, folders, runBinary, startBelfry } from "../harness/binary"
import { type Kannel, kannel, noKannel } from "../harness/kannel"
import { missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { sizes } from "../harness/sizes"
import { get, until } from "./mails"
import { lean } from "./serve"

const PASSWORD = "Correct-horse-9!"
const EMAIL = ["--email", "you@example.com", "--password-stdin"]

/** Types the commands of the guide, after those that a person would have typed before. The address for callbacks. */
async function follow(server: Belfry, gateway: Kannel, before: string): Promise<string> {
  const owner = ["admin", "bootstrap", ...EMAIL, "--data-dir", server.data_dir]
  const made = await runBinary(owner, { home: server.home, input: PASSWORD })
  expect(made).toMatchObject({ code: 0 })
  const login = ["login", server.url, ...EMAIL]
  const signed_in = await runBinary(login, { home: server.home, input: PASSWORD })
  expect(signed_in).toMatchObject({ code: 0 })
  const blocks = codeBlocks("docs/sms.md").filter(({ heading }) => heading === "Kannel")
  const commands = blocks.filter(({ language }) => language === "sh").map(({ code }) => code)
  const typed = commands.join("\n").replace(/^belfry login .*$/m, "")
  const child = Bun.spawn(["bash", "-eo", "pipefail", "-c", gateway.atItsPorts(before + typed)], {
    cwd: join(server.home, "work"),
    env: { ...folders(server.home), PATH: `${dirname(binary)}:${process.env.PATH}` },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [said, code] = await Promise.all([child.stderr.text(), child.exited])
  expect({ said, code }).toMatchObject({ code: 0 })
  const configuration = readFileSync(join(server.home, "work/kannel.conf"), "utf8")
  await gateway.start(configuration)
  return /^get-url = "([^?]+)/m.exec(configuration)?.[1] ?? ""
}

interface Sms {
  id: string
  status: string
  from: string
  body: string
  provider: string
  segments: number
  in_reply_to: string | null
}

const post = async (server: Belfry, to: string, body: string) => {
  const init = { method: "POST", body: JSON.stringify({ to, body }) }
  const answer = await (await server.request("/v1/sms", init)).json()
  return answer as { data?: { id: string }; error?: { code: string } }
}

async function send(server: Belfry, to: string, body: string): Promise<string> {
  const { data, error } = await post(server, to, body)
  expect(error).toBeUndefined()
  return data?.id ?? ""
}

const delivered = (server: Belfry, id: string) =>
  until(`the report of ${id}`, async () => {
    const sms = await get<Sms>(server, `/v1/sms/${id}`)
    return sms.status === "delivered" && sms
  })

const BODIES = ["Grüße & 3 € [5%]", "Привет 😀 + more", "long ".repeat(90), "😀 ".repeat(90)]

test.skipIf(noKannel || missing("jq"))(
  "by the guide, texts leave by Kannel though the first provider is down, and a STOP comes back",
  async () => {
    await using gateway = await kannel()
    const env = { ...lean, BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.1/32" }
    await using server = await startBelfry({ env })
    const down = `http://127.0.0.1:${await freePort()}/send`
    const callback = await follow(
      server,
      gateway,
      `belfry providers set http --name down --priority 1 --http-url ${down}\n`,
    )

    expect(await (await fetch(`${callback}?hub.challenge=1158201444`)).text()).toBe("1158201444")
    expect((await fetch(`${callback.slice(0, -1)}?id=1&status=1`)).status).toBe(401)

    const texts = Array.from({ length: sizes.gateway_texts }, (_, at) => ({
      to: `+43660${1_000_000 + at}`,
      text: `${at} ${BODIES[at % BODIES.length]}.`,
    }))
    const ids = await Promise.all(texts.map(({ to, text }) => send(server, to, text)))
    const got = await gateway.phones(texts.length)
    const shown = got.map(({ to, text }) => ({ to, text }))
    expect(shown.sort((one, other) => (one.to < other.to ? -1 : 1))).toEqual(texts)
    for (const id of ids) expect(await delivered(server, id)).toMatchObject({ provider: "http" })

    const [{ to } = { to: "" }] = texts
    await gateway.type({ from: to, to: "1234", text: " Stop" })
    const [reply] = await until("the STOP", async () => {
      const received = await get<Sms[]>(server, "/v1/sms?direction=inbound")
      return received.length > 0 && received
    })
    const received = await get<Sms>(server, `/v1/sms/${reply?.id}`)
    expect(received).toMatchObject({ from: to, status: "received", in_reply_to: ids[0] })
    const refused = until("the refusal", async () => {
      const { error } = await post(server, to, "again")
      return error
    })
    expect(await refused).toMatchObject({ code: "suppressed_recipient" })
  },
)
