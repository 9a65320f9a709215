import type { Secrets } from "../core/secrets"
import { type PublicAddress, trackingHost } from "../domains/sending-domains"
import type { Caller } from "../identity/caller"
import type { Envelope } from "../messages/tables"
import type { Reader } from "../store/store"
import { type HtmlTracking, linksToUnsubscribe } from "./tracked-html"
import { TOKEN_PURPOSE } from "./tracking-tokens"

/** What a send says of its tracking; null is what the project says, or else the account. */
export interface TrackingWish {
  track_opens: boolean | null
  track_clicks: boolean | null
}

/**
 * What is tracked of an email with html (contract 20, section 1.1); undefined for nothing. Ask it of no other: a text
 * is never tracked, because it has no place for a picture and shows its links.
 */
export function chosenTracking(
  { track_opens, track_clicks }: TrackingWish,
  { project_settings, account_settings }: Pick<Caller, "project_settings" | "account_settings">,
): Envelope["track"] {
  const opens = track_opens ?? project_settings.track_opens ?? account_settings.track_opens
  const clicks = track_clicks ?? project_settings.track_clicks ?? account_settings.track_clicks
  return opens || clicks ? { opens, clicks } : undefined
}

/**
 * The same for a message that was submitted as bytes. These are what its author wants to be sent, so the
 * default of the account does not count: the message or the project has to ask for it.
 */
export function chosenForBytes(
  { track_opens, track_clicks }: TrackingWish,
  { project_settings }: Pick<Caller, "project_settings">,
): Envelope["track"] {
  const opens = track_opens ?? project_settings.track_opens ?? false
  const clicks = track_clicks ?? project_settings.track_clicks ?? false
  return opens || clicks ? { opens, clicks } : undefined
}

/**
 * The same at the host of its links: the one of the sender's domain, else `tracking_domain` of the
 * project, else the address of this instance, which is not named. `domain` is null where the sender
 * has none of its own. Undefined where the public address is not known: a link would lead nowhere.
 */
export async function trackingAtHost(
  track: NonNullable<Envelope["track"]>,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  domain: string | null,
  { read, publicAddress }: { read: Reader; publicAddress: PublicAddress },
): Promise<Envelope["track"]> {
  if ((await publicAddress(project_id, domain)) === undefined) return undefined
  const own = domain === null ? null : await trackingHost(read, project_id, domain)
  const host = own ?? project_settings.tracking_domain
  return host === null ? track : { ...track, host }
}

/**
 * What the thread that composes the mail needs of it. `address` is the public one of this server, for this mail;
 * undefined without it.
 */
export function trackingFor(
  secrets: Pick<Secrets, "mac">,
  message_id: string,
  { opens, clicks, host }: NonNullable<Envelope["track"]>,
  headers: Record<string, string>,
  address: string | undefined,
): HtmlTracking | undefined {
  const own = address?.replace(/\/+$/, "")
  if (own === undefined) return undefined
  const base = host === undefined ? own : hostedAt(own, host)
  const prefixes = [own, base].flatMap((start) =>
    ["u", "p", "t"].map((word) => `${start}/${word}/`),
  )
  return {
    ...{ message_id, opens, clicks, base_url: base },
    key: secrets.mac(TOKEN_PURPOSE, "v1"),
    untracked: { urls: unsubscribeLinks(headers), prefixes },
  }
}

/** The same server under another name. */
function hostedAt(base_url: string, host: string): string {
  const url = new URL(base_url)
  url.hostname = host
  return url.href.replace(/\/+$/, "")
}

function unsubscribeLinks(headers: Record<string, string>): string[] {
  const name = Object.keys(headers).find((one) => one.toLowerCase() === "list-unsubscribe")
  return name === undefined ? [] : linksToUnsubscribe(headers[name] ?? "")
}
