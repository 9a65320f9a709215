/**
 * The form in which a text is searched in any case. It is kept beside the text, because a database
 * may lower-case ASCII only.
 */
export const searchable = (text: string): string => text.normalize("NFC").toLowerCase()

/** A pattern of LIKE, with a backslash as its escape, for a part of a `searchable` text. */
export const partOf = (text: string): string => `%${searchable(text).replace(/[\\%_]/g, "\\$&")}%`
