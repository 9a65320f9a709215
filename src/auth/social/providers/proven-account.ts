import { isMailbox } from "../../../lib/address"
import { isLonger } from "../../../lib/text"
import { isShownUrl } from "../../application-schemas"
import { type ProvenAccount, providerFault } from "./oauth-adapter"

const MOST_NAME_CHARACTERS = 200
const CONTROL = /[\p{Cc}\u2028\u2029]/u

interface ToldAccount {
  id: unknown
  email: unknown
  is_verified: boolean
  name: unknown
  picture: unknown
}

/** What a provider tells of an account, without what is not fit to be kept. Throws 502 where it has no usable id. */
export function provenAccount(
  provider: string,
  { id, email, is_verified, name, picture }: ToldAccount,
): ProvenAccount {
  if (typeof id !== "string" || !/^[\x20-\x7e]{1,255}$/.test(id))
    throw providerFault(provider, "no_account_id")
  const address = typeof email === "string" && isMailbox(email) ? email : null
  return {
    provider_user_id: id,
    email: address,
    email_verified: address !== null && is_verified,
    name: isName(name) ? name : null,
    avatar_url: typeof picture === "string" && isShownUrl(picture) ? picture : null,
  }
}

const isName = (name: unknown): name is string =>
  typeof name === "string" &&
  name.trim() !== "" &&
  name.isWellFormed() &&
  !isLonger(name, MOST_NAME_CHARACTERS) &&
  !CONTROL.test(name)
