import { expect, setDefaultTimeout, test } from "bun:test"
import { settings } from "../../../src/core/config"
import { smsSegments } from "../../../src/lib/sms-segments"
import type { ProviderReport } from "../../../src/providers/provider"
import { httpProvider } from "../../../src/sms/providers/http"
import { kannel, noKannel } from "../../harness/kannel"
import { LOOPBACK } from "../../harness/providers"
import { sizes } from "../../harness/sizes"

setDefaultTimeout(60_000)

const URL_OF_KANNEL =
  "http://127.0.0.1:13013/cgi-bin/sendsms?username=belfry&password=kannel-secret&charset=UTF-8" +
  "&coding={{#if ucs2}}2{{else}}0{{/if}}&from={{from}}&to={{to}}&text={{text}}" +
  "&dlr-mask=31&dlr-url={{callback_url}}%26status%3D%25d"

const configuration = (callback: string) => `
group = core
admin-port = 13000
admin-interface = 127.0.0.1
admin-password = kannel-admin
smsbox-port = 13001
smsbox-interface = 127.0.0.1

group = smsc
smsc = fake
smsc-id = network
port = 13010
connect-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = 13013
sendsms-interface = 127.0.0.1
mo-recode = true

group = sendsms-user
username = belfry
password = kannel-secret
concatenation = true
max-messages = 10

group = sms-service
keyword = default
catch-all = true
max-messages = 0
get-url = "${callback}?id=%I&from=%p&to=%P&text=%b"
`

const BODIES = ["Grüße & 3 € [5%]", "Привет 😀 + more", "long ".repeat(90), "😀 ".repeat(90)]

test.skipIf(noKannel)("texts in both alphabets pass Kannel, and its calls are read", async () => {
  await using gateway = await kannel()
  const context = {
    settings: settings(),
    allow_private: LOOPBACK,
    simulator: { show: async () => {}, report: async () => {} },
  }
  const access = { method: "GET", url: gateway.atItsPorts(URL_OF_KANNEL) } as const
  const reports: ProviderReport[] = []
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch({ url, headers }) {
      const fields = Object.fromEntries(new URL(url).searchParams)
      const request = { method: "GET", url, headers, body: new Uint8Array(), fields } as const
      const call = { request, access, context, network: { allow_private: [] } }
      reports.push((await httpProvider.callbacks?.read(call)) ?? { notices: [] })
      return new Response("ok")
    },
  })
  const callback = `http://127.0.0.1:${server.port}/callback`
  await gateway.start(configuration(callback))
  const opening = { settings: { from: "1234" }, callbackUrl: () => callback }
  const provider = httpProvider.open(access, context, opening)
  const texts = Array.from({ length: sizes.gateway_texts }, (_, at) => ({
    message_id: `019a0000-0000-7000-8000-${String(at).padStart(12, "0")}`,
    to: [`+43660${1_000_000 + at}`],
    text: `${at} ${BODIES[at % BODIES.length]}.`,
  }))
  const send = (to: typeof provider, { text, ...one }: (typeof texts)[number]) => {
    const { encoding } = smsSegments(text)
    return to.send({ ...one, text, encoding, project_id: "", from: null, attempt: 1 })
  }
  for (const one of texts) {
    expect(await send(provider, one)).toMatchObject({ status: "sent", sender: "1234" })
  }
  const got = (await gateway.phones(texts.length)).map(({ to, text }) => `${to} ${text}`)
  expect(got.sort()).toEqual(texts.map(({ to, text }) => `${to} ${text}`).sort())
  await gateway.type({ from: "+436601000001", to: "1234", text: "Stop" })
  const typed = () => reports.find(({ received }) => received)?.received
  const delivered = () =>
    reports.filter(({ notices: [one] }) => one?.type === "delivered").map((one) => one.message_id)
  while (!typed() || delivered().length < texts.length) await Bun.sleep(20)
  expect(typed()).toMatchObject({ from: "+436601000001", to: "1234", text: "Stop" })
  expect(delivered().sort()).toEqual(texts.map(({ message_id }) => message_id))

  const [last] = texts.slice(-1)
  if (!last) throw new Error("no texts")
  const wrong = { ...access, url: access.url.replace("kannel-secret", "wrong") }
  const refused = await send(httpProvider.open(wrong, context, opening), last)
  expect(refused).toMatchObject({ status: "failed", fault: "authentication" })
  await gateway[Symbol.asyncDispose]()
  expect(await send(provider, last)).toMatchObject({ status: "retry", fault: "connection" })
})
