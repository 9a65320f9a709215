import { and, eq } from "drizzle-orm"
import { errors, type JWTPayload } from "jose"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { isoFrom, millis } from "../core/time"
import type { BrowserTokens, TokenBearer } from "../http/guard"
import { refuse } from "../identity/authenticate"
import {
  type AllowedOrigins,
  accountFacts,
  type Caller,
  nobody,
  withDefaults,
} from "../identity/caller"
import { accounts, type ProjectSettings, projects } from "../identity/tables"
import { signToken, unprovenParts, verifyToken } from "../lib/signed-token"
import { LONGEST_TOKEN_SECONDS, provingKey, signerOf } from "../signing-keys/signing-keys"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { subscribers } from "../subscribers/tables"

export const SHORTEST_SECONDS = 60
export const LONGEST_SECONDS = LONGEST_TOKEN_SECONDS

const AUDIENCE = "inbox"
const TYPE = "inbox+jwt"

/** Whose token it is, and until when. */
export interface ProvenToken {
  project_id: string
  subscriber_id: string
  ends_at: string
  is_over: boolean
}

interface InboxTokenParts {
  store: Store
  secrets: Secrets
  /** The public address of this instance; asked at each use, since a free port is known late. */
  base_url: () => string
}

/**
 * Tokens by which an app acts for one subscriber: a JWT (RFC 7519) that a key of the project signed
 * with Ed25519. The issuer is the project's URL, and `{iss}/jwks.json` has the public keys.
 */
export class InboxTokens implements BrowserTokens {
  readonly #parts: InboxTokenParts

  constructor(parts: InboxTokenParts) {
    this.#parts = parts
  }

  /** A token of this subscriber for so many seconds. */
  async sign(
    { id, project_id }: { id: string; project_id: string },
    ttl_seconds: number,
  ): Promise<string> {
    const { store, secrets } = this.#parts
    const key = await signerOf(store, secrets, { project_id })
    const iat = Math.floor(millis() / 1000)
    const times = { iat, exp: iat + ttl_seconds, jti: newId() }
    const iss = `${this.#issuers()}${project_id}`
    return signToken(key, TYPE, { iss, sub: id, aud: AUDIENCE, ...times })
  }

  isOwn(token: string): boolean {
    return unprovenParts(token)?.iss.startsWith(this.#issuers()) ?? false
  }

  /**
   * What a token proves, also one that is over. Nothing is known of the subscriber yet. Throws 401 for a token that is
   * not of this server's making.
   */
  async prove(token: string): Promise<ProvenToken> {
    const { iss = "", kid = "" } = unprovenParts(token) ?? {}
    const project_id = iss.slice(this.#issuers().length)
    if (!this.isOwn(token) || !isUuid(project_id)) return refuse()
    const key = await provingKey(this.#parts.store.read, { project_id }, kid)
    if (!key) return refuse()
    const rules = { issuer: iss, audience: AUDIENCE, type: TYPE, claims: ["sub"] }
    const verifying = verifyToken(token, key, { ...rules, at: new Date(millis()) })
    const { sub, exp, is_over } = await verifying.then(asLive, asOver)
    if (sub === undefined || !isUuid(sub)) return refuse()
    return { project_id, subscriber_id: sub, ends_at: isoFrom(exp * 1000), is_over }
  }

  async identify(token: string, ip: string): Promise<TokenBearer> {
    const { is_over, ends_at, ...bearer } = await this.prove(token)
    const [row] = await findBearer(this.#parts.store.read, bearer)
    if (!row || !isAlive(row)) return refuse()
    const caller = callerOf(row, ip, ends_at)
    const is_let_in = !is_over && row.subscriber !== null && row.subscriber.status !== "blocked"
    return { allowed_origins: caller.allowed_origins ?? [], caller: is_let_in ? caller : undefined }
  }

  /** Begins every issuer. */
  #issuers() {
    return `${this.#parts.base_url()}/v1/projects/`
  }
}

const asLive = ({ sub, exp = 0 }: JWTPayload) => ({ sub, exp, is_over: false })

/** A token that was right once still tells its project, so that a page may read that it is over. */
const asOver = (error: unknown) =>
  error instanceof errors.JWTExpired ? { sub: error.payload.sub, exp: 0, is_over: true } : refuse()

/** An empty list admits the pages of every origin. */
export function originsOf(settings: Partial<ProjectSettings>): AllowedOrigins {
  const { allowed_origins } = withDefaults(settings)
  return allowed_origins.length > 0 ? allowed_origins : "any"
}

type BearerRow = Awaited<ReturnType<typeof findBearer>>[number]

interface LifeSigns {
  project: Pick<BearerRow["project"], "status" | "hidden">
  account: Pick<BearerRow["account"], "deleting_at">
}

/** Tokens stop at once when their project or account is being deleted. */
export const isAlive = ({ project, account }: LifeSigns) =>
  project.status === "active" && account.deleting_at === null && !project.hidden

function callerOf(
  { project, account, subscriber }: BearerRow,
  ip: string,
  expires_at: string,
): Caller {
  const project_settings = withDefaults(project.settings)
  return {
    ...nobody(ip),
    ...accountFacts(account),
    kind: "subscriber",
    subscriber_id: subscriber?.id ?? null,
    project_id: project.id,
    expires_at,
    allowed_origins: originsOf(project.settings),
    project_settings,
  }
}

/** The project, with the subscriber where it has one of that id. */
export const findBearer = prepared(
  { project_id: projects.id, subscriber_id: subscribers.id },
  (db: Reader, slot) =>
    db
      .select({ project: projects, account: accounts, subscriber: subscribers })
      .from(projects)
      .innerJoin(accounts, eq(accounts.id, projects.account_id))
      .leftJoin(
        subscribers,
        and(eq(subscribers.project_id, projects.id), eq(subscribers.id, slot.subscriber_id)),
      )
      .where(eq(projects.id, slot.project_id)),
)
