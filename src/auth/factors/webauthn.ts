import { type Static, Type as t } from "@sinclair/typebox"
import { anything } from "../../lib/record-fields"
import type { RelyingParty } from "./relying-party"

/** Loaded at their first use, because they take some megabytes of memory. */
const webauthn = (): typeof import("@simplewebauthn/server") => require("@simplewebauthn/server")
const helpers = (): typeof import("@simplewebauthn/server/helpers") =>
  require("@simplewebauthn/server/helpers")

/** How long a browser may ask the person. */
export const CEREMONY_SECONDS = 300

/** EdDSA, ES256 and RS256, as COSE numbers them. */
const ALGORITHMS = [-8, -7, -257]

const base64url = (maxLength: number) => t.String({ pattern: "^[A-Za-z0-9_-]+$", maxLength })

const MOST_CHARACTERS = 32_768
/** 1,023 bytes (section 5.1). */
const MOST_ID_CHARACTERS = 1364
const MOST_TRANSPORTS = 10
const MOST_TRANSPORT_CHARACTERS = 32

const transports = () =>
  t.Array(t.String({ maxLength: MOST_TRANSPORT_CHARACTERS }), { maxItems: MOST_TRANSPORTS })

/** What `toJSON` of a browser's credential has in every case (section 5.1). Unused fields are named, so that they are known. */
const common = {
  id: base64url(MOST_ID_CHARACTERS),
  rawId: base64url(MOST_ID_CHARACTERS),
  type: t.Literal("public-key"),
  authenticatorAttachment: t.Optional(t.Union([t.String(), t.Null()])),
  clientExtensionResults: t.Optional(anything({})),
}

/** A new passkey, as a browser gives it. */
export const Registration = t.Object({
  ...common,
  response: t.Object({
    clientDataJSON: base64url(MOST_CHARACTERS),
    attestationObject: base64url(MOST_CHARACTERS),
    authenticatorData: t.Optional(base64url(MOST_CHARACTERS)),
    publicKey: t.Optional(t.Union([t.String(), t.Null()])),
    publicKeyAlgorithm: t.Optional(t.Integer()),
    transports: t.Optional(transports()),
  }),
})

/** The signature of a passkey, as a browser gives it. */
export const Assertion = t.Object({
  ...common,
  response: t.Object({
    clientDataJSON: base64url(MOST_CHARACTERS),
    authenticatorData: base64url(MOST_CHARACTERS),
    signature: base64url(MOST_CHARACTERS),
    userHandle: t.Optional(t.Union([t.String(), t.Null()])),
  }),
})

/** A passkey, as far as browsers are told of it. */
interface KnownPasskey {
  credential_id: string
  transports: string[]
}

const described = (passkeys: KnownPasskey[]) =>
  passkeys.map(({ credential_id: id, transports }) => ({ id, transports }))

/** What a browser needs to make a passkey (section 5.4). It can be found without a name, and asks its person. */
export const creationOptions = (
  party: RelyingParty & { name: string },
  user: { id: string; name: string; displayName: string },
  own: KnownPasskey[],
) =>
  webauthn().generateRegistrationOptions({
    ...{ rpID: party.id, rpName: party.name },
    ...{ userID: Buffer.from(user.id), userName: user.name, userDisplayName: user.displayName },
    timeout: CEREMONY_SECONDS * 1000,
    excludeCredentials: described(own),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  })

/** What a browser needs to sign with a passkey (section 5.5). Where `among` is empty, the person chooses one. */
export const requestOptions = (party: RelyingParty, among: KnownPasskey[]) =>
  webauthn().generateAuthenticationOptions({
    rpID: party.id,
    timeout: CEREMONY_SECONDS * 1000,
    userVerification: "required",
    ...(among.length > 0 && { allowCredentials: described(among) }),
  })

/** What a ceremony has to be about. */
interface Expected {
  party: RelyingParty
  challenge: string
}

/** The passkey of a registration (section 7.1); undefined where anything about it is wrong. */
export async function readRegistration(
  { party, challenge }: Expected,
  credential: Static<typeof Registration>,
) {
  try {
    if (hasCertificates(credential.response.attestationObject)) return undefined
    const verified = await webauthn().verifyRegistrationResponse({
      response: credential as never,
      ...{ expectedChallenge: challenge, expectedOrigin: party.origins, expectedRPID: party.id },
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!verified.registrationInfo) return undefined
    const { credential: made, credentialBackedUp: backed_up } = verified.registrationInfo
    const { id: credential_id, counter } = made
    return { credential_id, public_key: encoded(made.publicKey), counter, backed_up }
  } catch {
    return undefined // the library throws for whatever is wrong
  }
}

/**
 * No maker of authenticators is asked for its word, and checking one would fetch lists of revoked certificates from
 * wherever it says.
 */
function hasCertificates(attestation: string): boolean {
  const { decodeAttestationObject } = helpers()
  const object = decodeAttestationObject(new Uint8Array(Buffer.from(attestation, "base64url")))
  const format = object.get("fmt")
  return (
    (format !== "none" && format !== "packed") || object.get("attStmt").get("x5c") !== undefined
  )
}

/** What is known of a passkey since its last use. */
export interface PasskeyState extends KnownPasskey {
  public_key: string
  counter: number
}

/** The state of a passkey after a signature (section 7.2); undefined where anything about it is wrong. */
export async function readAssertion(
  { party, challenge }: Expected,
  { credential_id: id, public_key, counter }: PasskeyState,
  credential: Static<typeof Assertion>,
): Promise<{ counter: number; backed_up: boolean } | undefined> {
  try {
    const { verified, authenticationInfo } = await webauthn().verifyAuthenticationResponse({
      response: credential as never,
      ...{ expectedChallenge: challenge, expectedOrigin: party.origins, expectedRPID: party.id },
      credential: { id, publicKey: new Uint8Array(Buffer.from(public_key, "base64url")), counter },
      requireUserVerification: true,
    })
    const { newCounter, credentialBackedUp: backed_up } = authenticationInfo
    return verified ? { counter: newCounter, backed_up } : undefined
  } catch {
    return undefined
  }
}

const encoded = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url")
