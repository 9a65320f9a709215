-- Rows of message_raws hold recipes from here on. A program of before would take them for bytes of mail.
SELECT 1;
