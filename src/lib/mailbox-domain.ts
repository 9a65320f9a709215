/**
 * The domain of the embedded mailbox: it is verified wherever mail goes there, and some of its
 * addresses bounce, complain or defer as their name says (contract 20, section 6).
 */
export const MAILBOX_DOMAIN = "mailbox.test"
