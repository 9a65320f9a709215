import type { Context } from "./context"
import { environment } from "./environment"
import { usage } from "./errors"
import { submissionPortOf } from "./profiles"

type TlsMode = "starttls" | "implicit" | "none"

export interface SubmissionServer {
  host: string
  port: number
  tls: TlsMode
  /** On this machine nobody stands between client and server. */
  is_local: boolean
}

const MODES: readonly string[] = ["starttls", "implicit", "none"]
const PORTS = { usual: 587, of_up: 2587, implicit: 465 }

/** `mail.example.com`, `mail.example.com:465`, `[::1]:2587`; without a text the profile's server. */
export function submissionServer(
  context: Context,
  text: string | undefined,
  given_tls: string | undefined,
): SubmissionServer {
  const named = text === undefined ? ofProfile(context, given_tls) : parsed(text)
  const { host } = named
  const is_local = /^(localhost|127(\.\d+){3}|::1)$/.test(host)
  const tls = modeOf(given_tls, named.port)
  const usual = is_local ? PORTS.of_up : PORTS.usual
  return { host, port: named.port ?? (tls === "implicit" ? PORTS.implicit : usual), tls, is_local }
}

function ofProfile(context: Context, tls: string | undefined): { host: string; port?: number } {
  const { url } = context.connection()
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "")
  const port = tls === "implicit" ? undefined : submissionPortOf(url, environment)
  return { host, ...(port !== undefined && { port }) }
}

function parsed(text: string): { host: string; port?: number } {
  const [, bracketed, plain, port] =
    /^(?:\[([\da-fA-F:.]+)\]|([^\s:/@]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port ?? 1) > 65_535 || Number(port ?? 1) === 0) {
    throw usage(
      `"${text}" is not a mail server`,
      "write mail.example.com, mail.example.com:465 or localhost:2587",
    )
  }
  return { host: host.toLowerCase(), ...(port !== undefined && { port: Number(port) }) }
}

function modeOf(given: string | undefined, port: number | undefined): TlsMode {
  if (given === undefined) return port === PORTS.implicit ? "implicit" : "starttls"
  if (MODES.includes(given)) return given as TlsMode
  throw usage(`--tls: "${given}" is not one of ${MODES.join(", ")}`)
}
