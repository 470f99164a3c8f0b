"""The words that synthetic pages are made of: short lists, and the dictionary in `words.txt`.

`words.txt` is a selection of SCOWL's English word list (licence in LICENSE-scowl.txt).
The order of every list is part of the generator: changing it changes every page.
"""

from __future__ import annotations

import functools
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


COMMON_WORDS = _words("""
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one
you were all her she there would their we him been has when who will no more if out so up said what its about than
into them can only other time new some could these two may first then do any like my now over such our man me even
most made after also well did many before must years back through much where your way down should because long each
just state those people too little good world make very year still see own work men day get here between both life
being under three never know same last another while us off might great go come since against right came take used
himself few house use place during without again home around small however found part school every number course
until water always away public fact less though put think almost hand enough far took head yet government system set
better told nothing night end why called eyes find going look asked later knew point next program city business give
group toward young let room side present given several order second possible rather per face among form important
often things early white case large need big four within felt along children saw best church ever least power light
thing
""")
"""The most frequent words of English, most frequent first; drawn with a Zipf-like weight."""

BUSINESS_WORDS = _words("""
invoice report total amount balance payment account customer order delivery shipment product service contract budget
revenue quarter annual monthly summary review schedule meeting project manager department office company market
sales price cost tax discount subtotal quantity unit item description date due terms policy analysis research method
result table figure section chapter page document agreement party client supplier vendor purchase receipt statement
interest loan rate growth profit margin expense income asset liability equity cash flow forecast target actual
variance percent increase decrease average region north south east west central office team staff employee training
safety quality test sample data model design review update version release note change request approval signature
reference number code status open closed pending complete draft final internal external confidential general
technical support network server energy power supply material steel paper plastic glass wood chemical medical
patient clinic hospital doctor treatment dose
""")
"""Words of invoices, reports, tables and clinics."""

FIRST_NAMES = _words("""
James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica
Thomas Sarah Charles Karen Daniel Nancy Matthew Lisa Anthony Betty Mark Sandra Paul Ashley Steven Emily Andrew Donna
Kenneth Michelle George Carol Joshua Amanda Kevin Melissa Brian Deborah Edward Laura Ronald Rebecca Ahmed Wei Priya
Hiroshi Fatima Olga Ivan Lucia Mateo Ingrid Lars Chloe Hugo Noah Emma Zoe
""")

SURNAMES = _words("""
Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson
Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker Young
Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter
Roberts Novak Kowalski Schmidt Fischer Weber Rossi Bianchi Dubois Tanaka Suzuki Kim Park Chen Singh Patel Khan Ali
Osei Okafor Larsen
""")

CITIES = _words("""
London Paris Berlin Madrid Rome Vienna Prague Warsaw Oslo Helsinki Dublin Lisbon Athens Boston Chicago Denver
Seattle Austin Dallas Houston Phoenix Portland Atlanta Miami Toronto Montreal Sydney Melbourne Tokyo Osaka Seoul
Singapore Mumbai Delhi Cairo Lagos Nairobi Geneva Zurich Munich Hamburg Milan Turin Lyon Bristol Leeds Oxford
Cambridge Glasgow Cardiff
""")

MONTHS = _words("""
January February March April May June July August September October November December
""")

STREET_KINDS = _words("""
Street Avenue Road Lane Drive Boulevard Court Square Way Place
""")

COMPANY_KINDS = _words("""
Inc. Ltd. LLC GmbH Corp. Group Partners Holdings Systems Labs Services Industries Logistics Energy Foods
""")


@functools.cache
def dictionary() -> list[str]:
    """The word list, in the order of its file."""
    path = Path(__file__).with_name("words.txt")
    return path.read_text("utf-8").splitlines()


@functools.cache
def short_words() -> list[str]:
    """The dictionary's words of at most 8 letters."""
    return [word for word in dictionary() if len(word) <= 8]
