/** What stands around a dot that ends a message for one server and not for another. */
const BROKEN_ENDS = [
  "\n",
  "\r",
  "\r\r",
  "\n\n",
  "\n\r",
  "\r\r\n",
  "\r\n\n",
  "\r\n\0",
  "\0\r\n",
  "\0",
]

/** Forms of `[line end].[line end]` that no server may take for an end, and none may pass on: no form begins with the true end. */
export const FORBIDDEN_ENDS: string[] = [
  ...BROKEN_ENDS.flatMap((end) => [`${end}.${end}`, `${end}.\r\n`, `\r\n.${end}`]),
  // CVE-2023-51764, -51765, -51766 (Postfix, Sendmail, Exim), and the forms of later finders.
  ...["\n.\r", "\r.\n", "\r\n.\0\r\n", "\r\n\0.\0\r\n", "\r\n.\r\r\n.\r\n", "\n.\n\n.\r\n"],
].filter((form) => !form.startsWith("\r\n.\r\n"))

/** Forms that hold only allowed bytes: to each server they are text in the middle of a message. */
export const HARMLESS_ENDS: string[] = [
  ...[
    "\r\n..\r\n",
    "\r\n. \r\n",
    "\r\n.\t\r\n",
    "\r\n .\r\n",
    "\r\n.\u000b\r\n",
    "\r\n.\u000c\r\n",
  ],
  ...["\u000b.\u000b", "\u000c.\u000c", "\u0085.\u0085", "\u2028.\u2028", "\r\n.\u200b\r\n"],
  ...[
    "\r\n.\u0008\r\n",
    "\r\n.=0D=0A",
    "=0D=0A.=0D=0A",
    "\r\n.a\r\n",
    "\r\n...\r\n",
    "\u0085.\r\n",
  ],
]

/** A second mail, as it would follow an end that only the other server sees. */
export const secondMail = (to: string): string =>
  `MAIL FROM:<evil@evil.test>\r\nRCPT TO:<${to}>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n.\r\n`
