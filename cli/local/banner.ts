import type { Settings } from "../../src/core/config"
import type { Running } from "../../src/server"
import type { SetupToken } from "../../src/tenancy/setup-token"
import type { Paint } from "../terminal"
import { version } from "../version"

/** What a person needs after `up`: only what answers today. */
export function banner(
  running: Running,
  api_key: string | null,
  values: Settings,
  paint: Paint,
): string {
  const { url, smtp, data_dir } = running
  const lines = [
    `${paint.bold(`belfry ${version} · up`)}       data ${data_dir}      loopback only`,
    pair("API", `${url}/v1`, paint),
    pair("Docs", `${url}/docs`, paint),
    ...(smtp.mailbox === null ? [] : [pair("Mailbox", `SMTP on port ${smtp.mailbox}`, paint)]),
    pair("Delivery", deliveryOf(values), paint),
    pair("API key", keyText(api_key), paint),
    ...(running.setup ? [pair("Owner", ownerText(running.setup, url), paint)] : []),
    "",
    `Try:  ${curl(url, api_key ?? "svc_live_…", senderOf(values))}`,
    "      and watch it here. Ctrl-C stops.",
    "",
  ]
  return lines.map((line) => (line === "" ? "" : `  ${line}`)).join("\n")
}

const pair = (name: string, value: string, paint: Paint) => `${paint.dim(name.padEnd(9))}  ${value}`

function deliveryOf(values: Settings): string {
  if (values["delivery.provider"] === "mailbox") return "the embedded mailbox"
  if (values["delivery.provider"] === "direct") return "the recipients' own mail servers"
  if (values["delivery.provider"] === "ses") return `SES in ${values["providers.ses.region"]}`
  return `relay ${values["providers.smtp.host"]}:${values["providers.smtp.port"]}`
}

function keyText(api_key: string | null): string {
  if (api_key === null) return "created earlier and not stored; --new-key creates another"
  return `${api_key}   (this data folder only)`
}

/** What is needed once there is more than one person. */
const ownerText = ({ token }: SetupToken, url: string) =>
  `none yet; belfry setup ${url} --setup-token ${token}`

function senderOf(values: Settings): string {
  const own = values["delivery.provider"] === "mailbox" ? undefined : values.sending_domains[0]
  return `me@${own ?? "mailbox.test"}`
}

/** Ready to run in any shell: single quotes, nothing to fill in. */
function curl(url: string, api_key: string, from: string): string {
  const body = JSON.stringify({ to: "ann@mailbox.test", from, subject: "Hi", text: "hello" })
  const headers = `-H 'X-API-Key: ${api_key}' -H 'Content-Type: application/json'`
  return `curl -s ${url}/v1/emails ${headers} \\\n          -d '${body}'`
}
