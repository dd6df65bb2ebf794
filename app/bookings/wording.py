"""The words of a reminder, one set a language: to add a language is to add a set.

The first language is the one for everybody whose own is missing here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """One language; the names in braces are filled in by `render`."""

    subject: str
    greeting: str
    greeting_nameless: str
    untitled: str
    intro: str
    when: str
    until: str
    zone: str
    zone_unknown: str
    where: str
    calendar: str
    why: str


ENGLISH = Wording(
    subject="Reminder: {title}, {when}",
    greeting="Hello {name},",
    greeting_nameless="Hello,",
    untitled="Your booking",
    intro="This is a reminder of your booking:",
    when="When",
    until="to",
    zone="Time zone",
    zone_unknown="UTC, because the booking's own time zone is not known to us",
    where="Where",
    calendar="Open the attached file to add it to your calendar.",
    why="You get this message because a reminder was set for {ahead} before the start.",
)
THAI = Wording(
    subject="แจ้งเตือนการจอง: {title}, {when}",
    greeting="สวัสดีคุณ {name}",
    greeting_nameless="สวัสดี",
    untitled="การจองของคุณ",
    intro="ขอแจ้งเตือนการจองของคุณ:",
    when="วันและเวลา",
    until="ถึง",
    zone="เขตเวลา",
    zone_unknown="UTC เนื่องจากเราไม่รู้จักเขตเวลาของการจองนี้",
    where="สถานที่",
    calendar="เปิดไฟล์แนบเพื่อเพิ่มการจองลงในปฏิทินของคุณ",
    why="คุณได้รับข้อความนี้เพราะมีการตั้งเตือนไว้ {ahead} ก่อนเวลาเริ่ม",
)
LANGUAGES = {"en": ENGLISH, "th": THAI}
