import { fail } from "../core/errors"
import { SecretError, type Secrets } from "../core/secrets"
import { isPast, secondsFromNow } from "../core/time"
import type { Workers } from "../core/workers"
import { TOKEN_PURPOSE } from "../tracking/tracking-tokens"
import type { LinkRules } from "./check-mail"
import { lookInto } from "./mail-look"
import { find, type MailboxMail, type MailboxReading } from "./mailbox"
import { loadedText, loadImages, withLoadPermit } from "./remote-images"
import type { ImagesToFind, MailToShow, RemoteImages } from "./view-task"

const VALID_SECONDS = 600
const CONTEXT = "mailbox:html:token"

export interface MailPageParts extends MailboxReading {
  secrets: Secrets
  workers: Workers
  link_rules: LinkRules
}

/**
 * Where a browser shows the html of a mail for ten minutes, without a key, so that a frame can load it.
 * The token is sealed: it tells nothing, and no other one can be made.
 */
export function htmlUrl(secrets: Secrets, project_id: string, mail_id: string): string {
  const named = JSON.stringify([project_id, mail_id, secondsFromNow(VALID_SECONDS)])
  return `/mailbox/html/${secrets.seal(named, CONTEXT)}`
}

interface MailName {
  project_id: string
  mail_id: string
}

function readToken(secrets: Secrets, token: string): MailName | undefined {
  try {
    const [project_id, mail_id, expires_at] = JSON.parse(secrets.open(token, CONTEXT)) as string[]
    if (!project_id || !mail_id || !expires_at || isPast(expires_at)) return undefined
    return { project_id, mail_id }
  } catch (error) {
    if (error instanceof SecretError) return undefined
    throw error
  }
}

/** Nothing runs and nothing is loaded but images that stand in the page itself. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

const GONE = "This address of a mail is not valid any more. Open the mail again in the mailbox."

interface MailLook extends Pick<MailToShow, "scheme"> {
  /** `remote`: with the images that stand on other servers. */
  images?: "remote" | undefined
}

/** The page behind such an address. Throws `not_found`, and 503 where too many images are loaded at the moment. */
export async function mailPage(
  parts: MailPageParts,
  token: string,
  { scheme, images }: MailLook,
): Promise<Response> {
  const { secrets, workers } = parts
  const named = readToken(secrets, token) ?? fail("not_found", GONE)
  const mail = await find(parts, named.project_id, named.mail_id)
  const load = () => remoteImages(parts, mail)
  const remote = images === "remote" ? await withLoadPermit(mail.project_id, load) : undefined
  const input = (raw: Uint8Array): MailToShow => ({ raw, policy: POLICY, scheme, remote })
  const page = await lookInto<string | undefined>(workers, mail, "show-mail", input)
  if (page === undefined) return fail("not_found", "This mail has no html.")
  return new Response(page, { headers: HEADERS })
}

/** Of the server's own pixel nobody asks: that would count as an opening by the recipient. */
async function remoteImages(parts: MailPageParts, mail: MailboxMail): Promise<RemoteImages> {
  const { secrets, workers, link_rules } = parts
  const key = secrets.mac(TOKEN_PURPOSE, "v1")
  const input = (raw: Uint8Array): ImagesToFind => ({ raw, key })
  const urls = await lookInto<string[]>(workers, mail, "remote-images", input)
  const by_url = await loadImages(urls, link_rules)
  return { by_url, note: loadedText(by_url.size, urls.length) }
}

/**
 * What a link may do when a person presses it: open a tab that knows nothing of the mail. That tab is an ordinary
 * one, since most pages do not work in a sandbox. Without scripts nothing opens by itself.
 */
const SANDBOX = "sandbox allow-popups allow-popups-to-escape-sandbox"

/** A document of its own origin: no script, no form, no cookie, and no network. */
const HEADERS = {
  "content-type": "text/html;charset=utf-8",
  "content-security-policy": `${SANDBOX}; ${POLICY}; frame-ancestors 'self'`,
  "cache-control": "private, no-store",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-dns-prefetch-control": "off",
  "x-frame-options": "SAMEORIGIN",
}
