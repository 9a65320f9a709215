ALTER TABLE `mailbox_mails` ADD `read_at` integer;--> statement-breakpoint
ALTER TABLE `mailbox_mails` ADD `attachments` integer;--> statement-breakpoint
ALTER TABLE `mailbox_mails` ADD `search_key` text;--> statement-breakpoint
CREATE INDEX `mailbox_mails_searched` ON `mailbox_mails` (`project_id`,`id`,`search_key`);--> statement-breakpoint
CREATE INDEX `mailbox_mails_unread` ON `mailbox_mails` (`project_id`,`id`) WHERE read_at IS NULL;