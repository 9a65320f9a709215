/** A complete send request; what is given replaces its fields, and undefined removes one. */
export const mail = (fields: Record<string, unknown> = {}) => ({
  from: "bell@example.test",
  to: "ann@example.test",
  subject: "Ding",
  text: "Dong",
  ...fields,
})

/** Some id of the right form that nobody has. */
export const NOBODY = "01912345-0000-7000-8000-000000000000"
