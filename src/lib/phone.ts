/** E.164 (contract 00, section 2). */
const PHONE = /^\+[1-9]\d{6,14}$/

/** Whether the text is a phone number of E.164, as people and programs give it to us. */
export const isPhone = (text: string): boolean => PHONE.test(text)

export const NOT_A_PHONE = "The value must be a phone number of E.164, such as +4915112345678."

/** Takes problems with fields. */
interface ProblemList {
  add(path: string, code: string, message: string): undefined
}

/** The phone number of a field, or undefined and the problem `invalid_phone_number`. */
export function readPhone(value: string, path: string, problems: ProblemList): string | undefined {
  return isPhone(value) ? value : problems.add(path, "invalid_phone_number", NOT_A_PHONE)
}

/** The number of a service that leaves out the plus, writes 00 for it, or puts groups; undefined where it is none. */
export function phoneFrom(text: string): string | undefined {
  const number = text.replace(/[\s-]/g, "").replace(/^(\+|00)?/, "+")
  return isPhone(number) ? number : undefined
}

/** As people write the countries that texts may go to: `+43`, or a longer beginning of numbers. */
export const COUNTRY_PREFIX = "^\\+[1-9][0-9]{0,6}$"

/** Country codes of two digits (ITU-T E.164, list of assigned codes). All but these, 1 and 7 have three. */
const OF_TWO_DIGITS = /^(2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/

/** The country code of a phone number, with its plus: `+43` of `+43660123456`. Countries may share one. */
export function countryPrefix(number: string): string {
  const digits = number.replace(/^\+/, "")
  const length = /^[17]/.test(digits) ? 1 : OF_TWO_DIGITS.test(digits) ? 2 : 3
  return `+${digits.slice(0, length)}`
}
