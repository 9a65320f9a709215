CREATE TABLE `merged_subscribers` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob NOT NULL,
	`external_id` text NOT NULL,
	`email_key` text,
	`phone` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `merged_subscribers_by_subscriber` ON `merged_subscribers` (`subscriber_id`,`id`);--> statement-breakpoint
CREATE INDEX `merged_subscribers_by_external_id` ON `merged_subscribers` (`project_id`,`external_id`);--> statement-breakpoint
CREATE INDEX `merged_subscribers_by_email` ON `merged_subscribers` (`project_id`,`email_key`) WHERE email_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `merged_subscribers_by_phone` ON `merged_subscribers` (`project_id`,`phone`) WHERE phone IS NOT NULL;