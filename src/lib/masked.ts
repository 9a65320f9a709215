/** A mail address of which only its owner can tell the rest: `a•••@example.com`. */
export function maskedEmail(email: string): string {
  const at = email.lastIndexOf("@")
  const [first = ""] = email
  return `${at > 1 ? first : ""}•••${email.slice(at)}`
}

/** The same of a phone number of E.164: `+49•••78`. */
export const maskedPhone = (number: string): string => `${number.slice(0, 3)}•••${number.slice(-2)}`
