import { id, index, json, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** A public key in the form of RFC 8037, section 2. */
export interface PublicJwk {
  kty: string
  crv: string
  x: string
  /** Of P-256 alone. */
  y?: string
}

/** The keys by which a project's tokens are signed. The public half is published. */
export const signingKeys = table(
  "signing_keys",
  {
    /** The `kid` of its tokens. */
    id: id(),
    project_id: ref().notNull(),
    /** Null for the tokens of subscribers, which the project itself signs. */
    application_id: ref(),
    /** What its tokens are for. */
    use: text<"inbox" | "auth">().notNull(),
    public_key: json<PublicJwk>().notNull(),
    /** Sealed. */
    private_key: text().notNull(),
    created_at: time().notNull(),
  },
  (key) => [
    index("signing_keys_by_project").on(key.project_id, key.id),
    index("signing_keys_by_application").on(key.application_id, key.id),
  ],
)
life(signingKeys, {
  owner: "project",
  ends: "never",
  sealed: {
    private_key: {
      what: "keys that sign tokens of subscribers and end users",
      remedy: "nothing; the next token gets a new key",
      drop: "row",
    },
  },
})
