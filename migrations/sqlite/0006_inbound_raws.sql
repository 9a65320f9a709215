CREATE TABLE `inbound_raws` (
	`inbound_id` blob PRIMARY KEY NOT NULL,
	`raw` blob NOT NULL,
	FOREIGN KEY (`inbound_id`) REFERENCES `inbound_emails`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
DROP INDEX `inbound_emails_by_sender`;--> statement-breakpoint
DROP INDEX `inbound_emails_by_thread`;--> statement-breakpoint
DROP INDEX `inbound_emails_by_message_id`;--> statement-breakpoint
CREATE INDEX `inbound_emails_by_sender` ON `inbound_emails` (`project_id`,`from_email`,`id`) WHERE from_email IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbound_emails_by_thread` ON `inbound_emails` (`project_id`,`thread_id`,`id`) WHERE thread_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbound_emails_by_message_id` ON `inbound_emails` (`project_id`,`rfc_message_id`) WHERE rfc_message_id IS NOT NULL;