interface Forgery {
  /** Header lines of the message that the report says it returns. */
  returned: string
  /** More lines of its own header. */
  header?: string
}

/** A well-formed report about a message: only what proves it may be missing. Lines end with LF. */
export function reportOf(kind: "bounce" | "complaint", { returned, header }: Forgery): string {
  const type = kind === "bounce" ? "delivery-status" : "feedback-report"
  const fields =
    kind === "bounce"
      ? "Reporting-MTA: dns; mx.elsewhere.test\n\nFinal-Recipient: rfc822; ann@example.test\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 unknown"
      : "Feedback-Type: abuse\nUser-Agent: Provider/1.0\nVersion: 1\nOriginal-Rcpt-To: ann@example.test"
  return [
    "From: MAILER-DAEMON@elsewhere.test",
    "Subject: report",
    ...(header === undefined ? [] : [header]),
    "MIME-Version: 1.0",
    `Content-Type: multipart/report; report-type=${type}; boundary="r"`,
    "",
    "--r",
    "Content-Type: text/plain",
    "",
    "A report.",
    "--r",
    `Content-Type: message/${type}`,
    "",
    fields,
    "",
    "--r",
    "Content-Type: message/rfc822",
    "",
    returned,
    "From: bell@example.test",
    "Subject: Ding",
    "",
    "Dong",
    "--r--",
    "",
  ].join("\n")
}
