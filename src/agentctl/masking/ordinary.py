"""Words that are names too, and words that stand where names stand."""

from __future__ import annotations

from typing import Final

from agentctl.masking.words import listed

NOT_NAMES: Final = listed(
    """
    customer client customers user users guest passenger traveler traveller sir madam team all there everyone everybody
    support friend friends folks agent assistant service desk hiring manager colleague colleagues member members
    valued not very so sorry happy glad writing looking trying calling going here now still just also only the a an my
    your our his her their its this that these those it he she we they you i in on at to from for of with without about
    against urgent unknown please thanks thank okay ok yes no none null true false good great sure fine new old first
    last next monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december today tomorrow yesterday order orders refund refunds flight flights hotel ticket
    tickets invoice account bank card email phone address name number date what when where who why how is are was were
    be been am do does did have has had can could will would should may might must let if then else but or because und
    """
)
"""What follows `Dear` or `I am` without being a name."""

AMBIGUOUS: Final = listed(
    """
    will may mark bill grace hope rose faith joy dawn summer april june august july march frank jack art drew chase
    hunter grant rich gene miles page price stone young long short brown white black green gray grey wood woods hill
    king cook baker bishop carter mason day best case love cash wells banks fields field rivers parks park cross ford
    bush church street lane post ward west east north south rice bean berry cherry olive ruby pearl amber crystal
    jade iris ivy lily daisy violet holly penny dollar pat sue rob bob nick dick don ken ray rod ron guy earl duke
    prince major miller smith taylor potter fisher farmer walker butler porter gardener weaver shepherd knight little
    small large strong sharp swift power powers moon star sky sun rain snow frost winter spring autumn monday friday
    china india paris london berlin roma victoria georgia virginia carolina austin dallas houston chelsea brooklyn
    christian angel jesus santos cruz reis rey rosa blanca sol luz paz mar marina alba aurora stella gloria victor
    max min van art bud buddy sonny junior senior ace an so do he she her him his my we me us you no yes on in at to
    of or if is as be by go it up lee li ma he ho wu xu yu an bo le la so to ng see shah high low first last gold
    silver iron steel copper wolf fox lion bear lamb bird crane swan drake finch martin robin jay hawk cooper turner
    chance merit honor justice liberty patience prudence constance charity harmony melody carol noel eve sage
    basil rosemary ginger pepper olive hazel heather fern forest glen dale heath marsh brook lake ocean river bay
    nova luna terra sierra savannah phoenix tiger
    """
)
"""Names that are ordinary words or places too; alone in a text they are not taken for the person."""
