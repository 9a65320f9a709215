/** E.164 (contract 00, section 2). */
const PHONE = /^\+[1-9]\d{6,14}$/

export const isPhone = (text: string): boolean => PHONE.test(text)

/** Why a value is refused where a phone number is needed. */
export const NOT_A_PHONE = "The value must be a phone number of E.164, such as +4915112345678."
